/* Call `onFile` with a file that the user chooses with `input` or drops on `area`. */
export function acceptFile(area, input, onFile) {
  input.addEventListener("change", () => {
    if (input.files.length) onFile(input.files[0]);
    input.value = ""; // the same file can be chosen again
  });
  for (const name of ["dragenter", "dragover"]) area.addEventListener(name, (event) => { event.preventDefault(); area.classList.add("over"); });
  for (const name of ["dragleave", "drop"]) area.addEventListener(name, () => area.classList.remove("over"));
  area.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) onFile(event.dataTransfer.files[0]);
  });
}
