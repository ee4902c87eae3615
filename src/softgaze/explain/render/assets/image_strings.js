/* Strings of the page of images. */

Object.assign(STRINGS.en, {
  title: "Attention of each word",
  images: "Images", image: "image {number}", caption: "Caption", "caption-empty": "The caption is empty.", "caption-of": "Caption of {name}.", "this-image": "this image",
  "image-hint": "Click a word to see its attention over the image. Click the image, or draw a box on it, to see the words that attend there. Keyboard: Tab to the words or the image, then the arrow keys; on the image, Shift with an arrow key extends the region. Escape clears.",
  "image-note": "Each image is brightest where its word has the largest weight, and dimmed where it has less.", "crop-note": "The model does not see the area outside the white frame.",
  "image-label": "Image in {rows} × {columns} cells: arrow keys select a cell, Shift with an arrow key extends the region",
  cell: "row {row}, column {column}", region: "Rows {top} to {bottom}, columns {left} to {right}", "one-cell": "Row {top}, column {left}", "one-row": "Row {top}, columns {left} to {right}", "one-column": "Rows {top} to {bottom}, column {left}",
  "uniform-share": "; uniform attention: {share}", "self-largest": ": self-attention largest at {cell} ({share}); {inside} stays inside",
  probability: " (probability {value})", "no-image-attention": "no attention to the image", "weight-at": "largest weight at {cell} ({share}); {count} of {cells} cells have half of the attention",
  "region-words": "Attention to this region", "word-probabilities": "Probability of each word",
  "probability-title": "Probability", "largest-cell": "Cell with the largest weight", "half-cells": "Cells with half of the attention", "raw-grid": "Raw grid", "self-attention": "Self-attention of regions",
});

Object.assign(STRINGS.ko, {
  title: "단어별 어텐션",
  images: "이미지", image: "이미지 {number}", caption: "캡션", "caption-empty": "캡션이 비어 있어요.", "caption-of": "{name}의 캡션이에요.", "this-image": "이 이미지",
  "image-hint": "단어를 누르면 이미지에서 어텐션을 받은 곳이 보여요. 이미지를 누르거나 상자를 그리면 그곳에 어텐션을 준 단어가 보여요. 키보드: Tab 키로 단어나 이미지로 간 뒤 화살표 키로 움직이고, 이미지에서 Shift+화살표 키로 영역을 넓혀요. Esc 키로 해제해요.",
  "image-note": "각 이미지는 그 단어의 가중치가 가장 큰 곳이 가장 밝고, 작을수록 어두워요.", "crop-note": "모델은 흰 테두리 밖을 보지 않아요.",
  "image-label": "{rows} × {columns}칸 이미지: 화살표 키로 칸을 고르고, Shift+화살표 키로 영역을 넓혀요",
  cell: "{row}행 {column}열", region: "{top}–{bottom}행 {left}–{right}열", "one-cell": "{top}행 {left}열", "one-row": "{top}행 {left}–{right}열", "one-column": "{top}–{bottom}행 {left}열",
  "uniform-share": "; 고르게 주었다면 {share}", "self-largest": ": 셀프 어텐션은 {cell}에서 가장 커요({share}). 영역 안에는 {inside}가 남아요",
  probability: " (확률 {value})", "no-image-attention": "이미지에 어텐션을 주지 않아요", "weight-at": "가장 큰 가중치는 {cell}({share})예요. {cells}칸 중 {count}칸이 어텐션의 절반을 받아요",
  "region-words": "이 영역에 준 어텐션", "word-probabilities": "단어별 확률",
  "probability-title": "확률", "largest-cell": "가중치가 가장 큰 칸", "half-cells": "어텐션의 절반을 받는 칸 수", "raw-grid": "격자 그대로", "self-attention": "영역의 셀프 어텐션",
});
