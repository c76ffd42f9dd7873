/** The frame of all pages: sign-in, navigation, and the page of the route. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { api, ApiError, type Caller, content, signInByCode, signOut } from './api/client';
import { startEvents, useConnected } from './api/events';
import { onSessionChange, token } from './api/session';
import { ErrorNotice, Loading, State } from './components/controls';
import { visible } from './format';
import { AboutPage } from './pages/about';
import { AgentsPage } from './pages/agents';
import { BusPage } from './pages/bus';
import { CallsPage } from './pages/calls';
import { ConfigurationPage } from './pages/configuration';
import { ConnectPage } from './pages/connect';
import { FleetPage } from './pages/fleet';
import { FunctionsPage } from './pages/functions';
import { KeysPage } from './pages/keys';
import { MemoryPage } from './pages/memory';
import { MetricsPage } from './pages/metrics';
import { SandboxPage } from './pages/sandbox';
import { SchedulesPage } from './pages/schedules';
import { SignIn } from './pages/sign_in';
import { TokensPage } from './pages/tokens';
import { ToolsPage } from './pages/tools';
import { href, navigate, parseRoute, type Route, useRoute } from './router';
import { currentTheme, setTheme, type Theme } from './theme';

interface PageProps {
  route: Route;
  caller: Caller;
}

interface Page {
  id: string;
  title: string;
  view: (props: PageProps) => ComponentChildren;
  /** True if the page has something to show for this caller. */
  isFor: (access: Caller['access']) => boolean;
}

type Access = Caller['access'];
const readers = ({ rest, admin }: Access) => rest || admin;
const callers = ({ rest }: Access) => rest;
const admins = ({ admin }: Access) => admin;

const PAGES: Page[] = [
  { id: 'fleet', title: 'Fleet', view: (props) => <FleetPage {...props} />, isFor: readers },
  { id: 'tools', title: 'Tools', view: (props) => <ToolsPage {...props} />, isFor: callers },
  { id: 'calls', title: 'Calls', view: (props) => <CallsPage {...props} />, isFor: admins },
  { id: 'metrics', title: 'Metrics', view: (props) => <MetricsPage {...props} />, isFor: admins },
  { id: 'keys', title: 'Keys', view: (props) => <KeysPage {...props} />, isFor: admins },
  { id: 'tokens', title: 'Tokens', view: () => <TokensPage />, isFor: readers },
  {
    id: 'functions',
    title: 'Functions',
    view: (props) => <FunctionsPage {...props} />,
    isFor: ({ functions, publish, admin }) => functions || publish || admin,
  },
  { id: 'schedules', title: 'Schedules', view: () => <SchedulesPage />, isFor: admins },
  { id: 'memory', title: 'Memory', view: () => <MemoryPage />, isFor: admins },
  { id: 'agents', title: 'Agents', view: () => <AgentsPage />, isFor: admins },
  { id: 'bus', title: 'Bus', view: () => <BusPage />, isFor: admins },
  { id: 'configuration', title: 'Configuration', view: (props) => <ConfigurationPage {...props} />, isFor: admins },
  { id: 'connect', title: 'Connect', view: (props) => <ConnectPage {...props} />, isFor: () => true },
  { id: 'sandbox', title: 'Sandbox', view: (props) => <SandboxPage {...props} />, isFor: admins },
  { id: 'about', title: 'About', view: (props) => <AboutPage {...props} />, isFor: () => true },
];

type Admission =
  | { state: 'unknown' }
  | { state: 'signed-out'; problem?: string }
  | { state: 'failed'; error: ApiError }
  | { state: 'admitted'; caller: Caller };

export function App() {
  const [admission, setAdmission] = useState<Admission>({ state: 'unknown' });
  const admit = () => {
    void admissionOf().then(setAdmission);
  };
  useEffect(() => {
    admit();
    return onSessionChange(admit);
  }, []);
  const isAdmitted = admission.state === 'admitted';
  useEffect(() => {
    if (isAdmitted) {
      startEvents();
    }
  }, [isAdmitted, token()]);
  switch (admission.state) {
    case 'unknown':
      return <Loading error={undefined} retry={admit} />;
    case 'signed-out':
      return <SignIn problem={admission.problem} />;
    case 'failed':
      return (
        <main class="sign-in">
          <h1>Toolyard</h1>
          <ErrorNotice error={admission.error} retry={admit} />
          {token() !== null && (
            <button type="button" onClick={() => void signOut()}>
              Sign out
            </button>
          )}
        </main>
      );
    case 'admitted':
      return <Shell caller={admission.caller} />;
  }
}

/** Signs in by the one-time code of the address, if there is one, and asks for the caller. */
async function admissionOf(): Promise<Admission> {
  const route = parseRoute(location.hash);
  const code = route.page === 'sign-in' ? route.query.get('code') : null;
  if (route.page === 'sign-in') {
    // The code must not stay in the history of the browser.
    history.replaceState(null, '', href(['fleet']));
  }
  try {
    if (code !== null) {
      await signInByCode(code);
    }
    return { state: 'admitted', caller: await content(api.GET('/caller')) };
  } catch (error) {
    if (!(error instanceof ApiError)) {
      throw error;
    }
    if (error.status === 401) {
      return { state: 'signed-out' };
    }
    if (code !== null && error.status === 404) {
      return { state: 'signed-out', problem: error.message };
    }
    return { state: 'failed', error };
  }
}

function Shell({ caller }: { caller: Caller }) {
  const route = useRoute();
  const pages = PAGES.filter((page) => page.isFor(caller.access));
  const page = pages.find((one) => one.id === route.page);
  const first = pages[0];
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    // The address may have changed since the drawing.
    const isCurrent = parseRoute(location.hash).page === route.page;
    if (page === undefined && first !== undefined && isCurrent) {
      navigate(href([first.id]), { replace: true });
    }
  }, [page, first, route.page]);
  useEffect(() => {
    document.title = page === undefined ? 'Toolyard' : `${page.title} · Toolyard`;
  }, [page]);
  return (
    <div class="shell">
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the content
      </a>
      <nav aria-label="Pages">
        <span class="brand">Toolyard</span>
        <ul>
          {pages.map((one) => (
            <li key={one.id}>
              <a href={href([one.id])} aria-current={one.id === route.page ? 'page' : undefined}>
                {one.title}
              </a>
            </li>
          ))}
        </ul>
        <Footer caller={caller} />
      </nav>
      <main ref={main} id="main" tabIndex={-1}>
        {page?.view({ route, caller })}
      </main>
    </div>
  );
}

function Footer({ caller }: { caller: Caller }) {
  const connected = useConnected();
  const [theme, setShown] = useState(currentTheme());
  const choose = (next: Theme) => {
    setTheme(next);
    setShown(next);
  };
  return (
    <div class="foot">
      <State kind={connected ? 'good' : 'off'}>{connected ? 'connected' : 'not connected'}</State>
      <select aria-label="Colours" value={theme} onChange={(event) => choose(event.currentTarget.value as Theme)}>
        <option value="system">System colours</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
      {caller.key !== undefined && (
        <span class="key-name">
          <bdi>{visible(caller.key.name)}</bdi>{' '}
          <button type="button" class="link" onClick={() => void signOut()}>
            Sign out
          </button>
        </span>
      )}
    </div>
  );
}
