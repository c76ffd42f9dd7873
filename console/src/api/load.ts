/** Loading of what a page shows. */
import { type StateUpdater, useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from './client';

export interface Loaded<T> {
  data: T | undefined;
  error: ApiError | undefined;
  /** Loads again, and resolves once the response is shown. What is shown stays until then. */
  reload: () => Promise<void>;
}

/** Loads when the page opens and when `inputs` change. A response that arrives after a later request is dropped. */
export function useLoad<T>(load: () => Promise<T>, inputs: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: ApiError }>({});
  const latest = useRef(0);
  const run = useCallback(() => {
    latest.current += 1;
    const turn = latest.current;
    const show = (next: StateUpdater<{ data?: T; error?: ApiError }>) => {
      if (turn === latest.current) {
        setState(next);
      }
    };
    return load().then(
      (data) => show({ data }),
      (error: unknown) => show((before) => ({ ...before, error: asApiError(error) })),
    );
    // The inputs are those of `load`.
  }, inputs);
  useEffect(() => {
    void run();
    return () => {
      latest.current += 1;
    };
  }, [run]);
  return { data: state.data, error: state.error, reload: run };
}

/** Calls a function at an interval while the page is visible. */
export function useInterval(call: () => void, milliseconds: number): void {
  const latest = useRef(call);
  latest.current = call;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) {
        latest.current();
      }
    }, milliseconds);
    return () => clearInterval(timer);
  }, [milliseconds]);
}

export interface Action {
  /** Starts the action, unless it is running. */
  run: () => void;
  running: boolean;
  error: ApiError | undefined;
}

/** An action by a person, such as the press of a button. */
export function useAction(action: () => Promise<void>): Action {
  const [running, setRunning] = useState(false);
  const [error, setError] = useState<ApiError>();
  const run = () => {
    if (running) {
      return;
    }
    setRunning(true);
    setError(undefined);
    action()
      .catch((error: unknown) => setError(asApiError(error)))
      .finally(() => setRunning(false));
  };
  return { run, running, error };
}

function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(String(error), 0, 'unknown');
}
