/* Strings of all pages in English and Korean, with {placeholders}. Descriptions of maps are in English, as in files. */

const STRINGS = {
en: {
  "switch-language": "한국어로 보기", "other-language": "한국어", percent: "{value} %",
  source: "source", output: "output", reference: "reference", queries: "queries", keys: "keys", bos: "beginning of the sentence", eos: "end of the sentence",
  empty: "(empty)", nothing: "nothing", layer: "Layer", head: "Head", "mean-of": "mean of {count}", "only-one": "the only one",
  word: "Word", words: "Word by word", "as-text": "Table, word by word", "largest-weight": "Largest weight", second: "Second", third: "Third",
  entropy: "Entropy", coverage: "Coverage", sink: "Sink", reliability: "Reliability", faithfulness: "Faithfulness",
},
ko: {
  "switch-language": "Show in English", "other-language": "English", percent: "{value}%",
  source: "원문", output: "번역", reference: "참조 번역", queries: "쿼리", keys: "키", bos: "문장 시작", eos: "문장 끝",
  empty: "(비어 있음)", nothing: "없음", layer: "층", head: "헤드", "mean-of": "{count}개 평균", "only-one": "하나뿐",
  word: "단어", words: "단어별", "as-text": "단어별 표", "largest-weight": "가장 큰 가중치", second: "두 번째", third: "세 번째",
  entropy: "엔트로피", coverage: "커버리지", sink: "싱크", reliability: "신뢰도", faithfulness: "충실도",
},
};
