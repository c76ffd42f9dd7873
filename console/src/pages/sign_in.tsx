import { useState } from 'preact/hooks';
import { signInByKey } from '../api/client';
import { useAction } from '../api/load';
import { ErrorNotice } from '../components/controls';

export function SignIn({ problem }: { problem: string | undefined }) {
  const [key, setKey] = useState('');
  const action = useAction(() => signInByKey(key.trim()));
  return (
    <main class="sign-in">
      <h1>Toolyard</h1>
      {problem !== undefined && (
        <div class="notice bad" role="alert">
          {problem}
        </div>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          action.run();
        }}
      >
        <label for="key">Key</label>
        <input
          id="key"
          type="password"
          autocomplete="off"
          spellcheck={false}
          placeholder="ty_…"
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
        <button type="submit" class="primary" disabled={action.running || key.trim() === ''}>
          Sign in
        </button>
      </form>
      <ErrorNotice error={action.error} />
      <p class="muted">
        This tab keeps a session of some hours in place of the key. <code>toolyard console</code> prints a link that signs in
        without typing the key.
      </p>
    </main>
  );
}
