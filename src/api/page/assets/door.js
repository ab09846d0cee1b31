// The key: asked for, kept until the tab is closed, and forgotten when it is not good.

const KEPT = "lanekeeper-key";
const form = document.getElementById("door");
const why = document.getElementById("door-why");
const input = document.getElementById("key");
const forget = document.getElementById("forget");

/** The key that was given before, if any. */
export function known() {
  try {
    return sessionStorage.getItem(KEPT) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Asks for a key and keeps it; `reason` says why, for people. */
export function ask(reason) {
  drop();
  why.textContent = reason;
  form.hidden = false;
  input.focus();
  return new Promise((resolve) => {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const key = input.value.trim();
      input.value = "";
      form.hidden = true;
      keep(key);
      resolve(key);
    }, { once: true });
  });
}

/** Shows the button that forgets the key, and calls `then` when it is pressed. */
export function offerToForget(then) {
  forget.hidden = false;
  forget.onclick = () => {
    drop();
    then();
  };
}

function keep(key) {
  try {
    sessionStorage.setItem(KEPT, key);
  } catch {
    // Then it is asked for again after a reload.
  }
}

function drop() {
  forget.hidden = true;
  try {
    sessionStorage.removeItem(KEPT);
  } catch {
    // There was none.
  }
}
