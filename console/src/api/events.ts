/**
 * The events of the gateway, on one stream for all parts of the page. `EventSource` cannot send a header, so the stream is
 * read by `fetch`.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { API, authorization } from './client';
import { onSessionChange } from './session';

type Listener = (data: string) => void;

const listeners = new Map<string, Set<Listener>>();
const connectionListeners = new Set<(connected: boolean) => void>();
let connected = false;
let running: AbortController | undefined;

const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 30_000;

/** Bytes of an event; a longer one is not from this API. */
const MAX_EVENT = 1 << 20;

function setConnected(value: boolean): void {
  if (connected !== value) {
    connected = value;
    connectionListeners.forEach((listener) => listener(value));
  }
}

/** Opens the stream, and opens it again whenever it ends, until `stopEvents`. */
export function startEvents(): void {
  stopEvents();
  const controller = new AbortController();
  running = controller;
  void follow(controller.signal);
}

export function stopEvents(): void {
  running?.abort();
  running = undefined;
  setConnected(false);
}

onSessionChange(stopEvents);

async function follow(signal: AbortSignal): Promise<void> {
  let wait = FIRST_WAIT;
  while (!signal.aborted) {
    try {
      const response = await fetch(`${API}/events`, { headers: authorization(), signal });
      if (response.status === 401 || response.status === 403) {
        return;
      }
      if (response.ok && response.body !== null) {
        setConnected(true);
        wait = FIRST_WAIT;
        await read(response.body);
      }
    } catch {
      // The gateway is restarting, or the page is closing.
    }
    if (signal.aborted) {
      return;
    }
    setConnected(false);
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
}

async function read(body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let buffer = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    buffer += decoder.decode(value, { stream: true });
    const events = buffer.split('\n\n');
    buffer = events.pop() ?? '';
    events.forEach(dispatch);
    if (buffer.length > MAX_EVENT) {
      await reader.cancel();
      return;
    }
  }
}

function dispatch(event: string): void {
  let kind = 'message';
  let data = '';
  for (const line of event.split('\n')) {
    if (line.startsWith('event: ')) {
      kind = line.slice(7);
    } else if (line.startsWith('data: ')) {
      data += line.slice(6);
    }
  }
  listeners.get(kind)?.forEach((listener) => listener(data));
}

/** Calls the latest `listener` for each event of a kind. */
export function useEvent(kind: string, listener: Listener): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => {
    const call: Listener = (data) => latest.current(data);
    const ofKind = listeners.get(kind) ?? new Set<Listener>();
    listeners.set(kind, ofKind);
    ofKind.add(call);
    return () => {
      ofKind.delete(call);
    };
  }, [kind]);
}

/** True while the stream is open. */
export function useConnected(): boolean {
  const [value, setValue] = useState(connected);
  useEffect(() => {
    connectionListeners.add(setValue);
    setValue(connected);
    return () => {
      connectionListeners.delete(setValue);
    };
  }, []);
  return value;
}
