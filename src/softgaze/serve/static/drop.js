/* A place for a file: chosen with a button, or dropped. */

export function dropped(area, input, take) {
  input.addEventListener("change", () => {
    if (input.files.length) take(input.files[0]);
    input.value = ""; // the same file can be chosen again
  });
  for (const name of ["dragenter", "dragover"]) area.addEventListener(name, (event) => { event.preventDefault(); area.classList.add("over"); });
  for (const name of ["dragleave", "drop"]) area.addEventListener(name, () => area.classList.remove("over"));
  area.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
  });
}
