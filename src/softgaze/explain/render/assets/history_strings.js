/* Strings of the page of an attention history. */

Object.assign(STRINGS.en, {
  title: "Attention during training",
  play: "Play", pause: "Pause", moment: "Moment of the training", "at-step": "step {step}, {minutes} minutes", "heat-at": "Heat map at {moment}", loss: "dev loss", bleu: "dev BLEU",
  "chart-note": "each on a scale from 0 to its largest value; steps 0 to {step}",
  "history-note": "All maps are teacher-forced on the reference, so that they can be compared; the output of the model at that moment is above. Arrow keys step, the space bar plays.",
});

Object.assign(STRINGS.ko, {
  title: "학습 중의 어텐션",
  play: "재생", pause: "멈춤", moment: "학습 시점", "at-step": "{step}스텝, {minutes}분", "heat-at": "{moment}의 히트맵", loss: "검증 손실", bleu: "검증 BLEU",
  "chart-note": "각각 0부터 최댓값까지의 눈금이에요. 0–{step}스텝",
  "history-note": "비교할 수 있도록 모든 맵은 참조 번역을 입력으로 준(teacher forcing) 결과예요. 그 시점에 모델이 낸 번역은 위에 있어요. 화살표 키로 한 단계씩, 스페이스 키로 재생해요.",
});
