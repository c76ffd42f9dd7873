/**
 * The session of this tab. The key that a person enters is exchanged at once for the token of a session and not kept;
 * the token is sent as a header, so that no other page can make this browser send it (CSRF).
 */
const STORED = 'toolyard.session';

type Listener = () => void;
const listeners = new Set<Listener>();

export function token(): string | null {
  return sessionStorage.getItem(STORED);
}

export function setToken(value: string | null): void {
  if (value === null) {
    sessionStorage.removeItem(STORED);
  } else {
    sessionStorage.setItem(STORED, value);
  }
  listeners.forEach((listener) => listener());
}

let held = false;

/** Keeps the page while the first key of a gateway is created: from then on, requests without a session are refused. */
export function holdPage(value: boolean): void {
  held = value;
}

export function isPageHeld(): boolean {
  return held;
}

/** Calls a function whenever the session begins or ends. Returns how to stop this. */
export function onSessionChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
