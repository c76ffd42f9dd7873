/**
 * Routes in the fragment of the URL, which no server sees: `#/tools/add?query=x`. So the gateway serves one page, and a
 * one-time code in a link reaches neither a log nor a referrer.
 */
import { useEffect, useMemo, useState } from 'preact/hooks';

export interface Route {
  /** First part of the path: the page. */
  page: string;
  /** The other parts. */
  parts: string[];
  query: URLSearchParams;
}

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const [page = '', ...parts] = path.split('/').map(decode);
  return { page, parts, query: new URLSearchParams(query) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Returns the address of a page. Empty values of the query are left out. */
export function href(parts: string[], query: Record<string, string | undefined> = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const search = new URLSearchParams(given).toString();
  return `#/${parts.map(encodeURIComponent).join('/')}${search === '' ? '' : `?${search}`}`;
}

/** Goes to a page. */
export function navigate(to: string, options: { replace?: boolean } = {}): void {
  if (options.replace === true) {
    history.replaceState(null, '', to);
    window.dispatchEvent(new HashChangeEvent('hashchange'));
  } else {
    location.hash = to;
  }
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const update = () => setHash(location.hash);
    window.addEventListener('hashchange', update);
    // It may have changed since the first drawing.
    update();
    return () => window.removeEventListener('hashchange', update);
  }, []);
  return useMemo(() => parseRoute(hash), [hash]);
}
