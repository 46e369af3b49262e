// Copying a text of the page, such as a command.

function setUpCopying() {
  for (const button of all(".copied .copy")) {
    const text = button.parentNode.querySelector("pre");
    button.setAttribute("aria-label", `Copy ${button.parentNode.querySelector("summary").textContent}`);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
      } catch {
        getSelection().selectAllChildren(text); // a page from a disk may not write to the clipboard
        if (!document.execCommand("copy")) return;
      }
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
  }
}
