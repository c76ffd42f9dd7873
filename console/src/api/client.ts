/** The client of the REST API, with types from its OpenAPI document. */
import createClient from 'openapi-fetch';
import type { components, paths } from './schema';
import { isPageHeld, setToken, token } from './session';

export type Schemas = components['schemas'];
export type Handler = Schemas['Handler'];
export type Key = Schemas['Key'];
export type AuditRecord = Schemas['Record'];
export type Caller = Schemas['Caller'];
export type Series = Schemas['Series'];
export type ScheduledTask = Schemas['ScheduledTask'];
export type McpTool = Schemas['McpTool'];
export type Problem = Schemas['Problem'];
export type CallResult = Schemas['Result'];

/** Address of the API, also if a proxy serves the gateway below a path. */
export const API = new URL('api/v1', document.baseURI).href;

/** An error response, or no response. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    /** Content of the response. */
    readonly body: unknown = undefined,
  ) {
    super(message);
  }
}

export function authorization(): Record<string, string> {
  const value = token();
  return value === null ? {} : { Authorization: `Bearer ${value}` };
}

const unanswered = new Set<Promise<Response>>();

export const api = createClient<paths>({
  baseUrl: API,
  fetch: (request) => {
    const answer = fetch(request);
    unanswered.add(answer);
    const forget = () => unanswered.delete(answer);
    answer.then(forget, forget);
    return answer;
  },
});

/** Waits until each request has its response, or has failed. */
export async function settleRequests(): Promise<void> {
  while (unanswered.size > 0) {
    await Promise.allSettled(unanswered);
  }
}

api.use({
  onRequest({ request }) {
    for (const [name, value] of Object.entries(authorization())) {
      request.headers.set(name, value);
    }
    return request;
  },
  onResponse({ request, response }) {
    // Only a response to the current session ends it. Without one, the gateway has its first key by now. The question for
    // the caller is what follows.
    const isCurrent = request.headers.get('Authorization') === (authorization()['Authorization'] ?? null);
    const isAsked = token() === null && (isPageHeld() || request.url === `${API}/caller`);
    if (response.status === 401 && isCurrent && !isAsked) {
      setToken(null);
    }
    return undefined;
  },
});

interface Fetched<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Returns the content of a response, or throws its problem. */
export async function content<T>(fetching: Promise<Fetched<T>>): Promise<T> {
  let fetched: Fetched<T>;
  try {
    fetched = await fetching;
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') {
      throw cause;
    }
    throw new ApiError('The gateway cannot be reached.', 0, 'unreachable');
  }
  const { data, error, response } = fetched;
  if (response.ok && data !== undefined) {
    return data;
  }
  throw problemError(error, response.status);
}

function problemError(error: unknown, status: number): ApiError {
  if (typeof error === 'object' && error !== null && 'detail' in error && 'code' in error) {
    const problem = error as Problem;
    return new ApiError(problem.detail, status, problem.code, problem);
  }
  return new ApiError(`The gateway answered with HTTP status ${status}.`, status, 'unknown', error);
}

/** Exchanges a one-time code for a session. */
export async function signInByCode(code: string): Promise<void> {
  const session = await content(api.POST('/sessions', { body: { code } }));
  setToken(session.token);
}

/** Exchanges a key for a session. */
export async function signInByKey(key: string): Promise<void> {
  const headers = { Authorization: `Bearer ${key}` };
  let response: Response;
  try {
    response = await fetch(`${API}/session-codes`, { method: 'POST', headers });
  } catch {
    // Also for a key with characters that no header may have.
    throw new ApiError('The gateway cannot be reached with this key.', 0, 'unreachable');
  }
  const body: unknown = await response.json().catch(() => undefined);
  if (!response.ok) {
    throw problemError(body, response.status);
  }
  await signInByCode((body as { code: string }).code);
}

export async function signOut(): Promise<void> {
  // The session may have ended already.
  await content(api.DELETE('/sessions/current')).catch(() => undefined);
  setToken(null);
}
