import { useState } from 'preact/hooks';
import type { Caller } from '../api/client';
import { Field, PageHead } from '../components/controls';
import { CopyText } from '../components/text';

/** Address of the MCP endpoint, also below a path. */
const ENDPOINT = new URL('mcp', document.baseURI).href;

const VARIABLE = 'TOOLYARD_KEY';

interface Client {
  name: string;
  /** Where the snippet belongs. */
  place: string;
  snippet: (hasKey: boolean) => string;
  command?: string;
}

function entry(hasKey: boolean, reference: string, type?: string): Record<string, unknown> {
  const headers = hasKey ? { headers: { Authorization: `Bearer ${reference}` } } : {};
  return { ...(type === undefined ? {} : { type }), url: ENDPOINT, ...headers };
}

function file(section: string, server: Record<string, unknown>): string {
  return JSON.stringify({ [section]: { toolyard: server } }, null, 2);
}

const CLIENTS: Client[] = [
  {
    name: 'Claude Code',
    place: '.mcp.json in the folder of the project',
    snippet: (hasKey) => file('mcpServers', entry(hasKey, `\${${VARIABLE}}`, 'http')),
    command: 'toolyard connect claude-code',
  },
  {
    name: 'Cursor',
    place: '~/.cursor/mcp.json',
    snippet: (hasKey) => file('mcpServers', entry(hasKey, `\${env:${VARIABLE}}`)),
    command: 'toolyard connect cursor',
  },
  {
    name: 'VS Code',
    place: '.vscode/mcp.json in the folder of the project',
    snippet: (hasKey) => file('servers', entry(hasKey, `\${env:${VARIABLE}}`, 'http')),
    command: 'toolyard connect vscode',
  },
  {
    name: 'Claude Desktop',
    place: 'claude_desktop_config.json. It starts local servers only, so it starts a gateway of its own.',
    snippet: () => file('mcpServers', { command: 'toolyard', args: ['stdio', '-f', 'toolyard.yaml'] }),
    command: 'toolyard connect claude --stdio -f toolyard.yaml',
  },
  {
    name: 'Python (mcp)',
    place: 'A program with the SDK of MCP',
    snippet: (hasKey) =>
      [
        'import asyncio',
        ...(hasKey ? ['import os', ''] : ['']),
        ...(hasKey ? ['import httpx'] : []),
        'from mcp import ClientSession',
        'from mcp.client.streamable_http import streamable_http_client',
        '',
        '',
        'async def main():',
        ...(hasKey
          ? [
              `    headers = {"Authorization": f"Bearer {os.environ['${VARIABLE}']}"}`,
              '    http = httpx.AsyncClient(headers=headers)',
              `    async with streamable_http_client("${ENDPOINT}", http_client=http) as (read, write, _):`,
            ]
          : [`    async with streamable_http_client("${ENDPOINT}") as (read, write, _):`]),
        '        async with ClientSession(read, write) as session:',
        '            await session.initialize()',
        '            print(await session.list_tools())',
        '',
        '',
        'asyncio.run(main())',
      ].join('\n'),
  },
  {
    name: 'curl',
    place: 'The REST API',
    snippet: (hasKey) => {
      const header = hasKey ? ` \\\n  -H "Authorization: Bearer $${VARIABLE}"` : '';
      return `curl -sS '${new URL('api/v1/tools', document.baseURI).href}'${header}`;
    },
  },
];

export function ConnectPage({ caller }: { caller: Caller }) {
  const [selected, setSelected] = useState(0);
  const hasKey = caller.key !== undefined;
  const client = CLIENTS[selected] ?? CLIENTS[0];
  return (
    <>
      <PageHead title="Connect" />
      <Field id="client" label="Client">
        <select id="client" value={String(selected)} onChange={(event) => setSelected(Number(event.currentTarget.value))}>
          {CLIENTS.map((one, index) => (
            <option key={one.name} value={String(index)}>
              {one.name}
            </option>
          ))}
        </select>
      </Field>
      {client !== undefined && (
        <>
          <p>{client.place}</p>
          <CopyText text={client.snippet(hasKey)} label={`Configuration of ${client.name}`} />
          {client.command !== undefined && (
            <>
              <p>Or on the command line, which changes the file and keeps what is in it:</p>
              <CopyText text={client.command} label="Command" />
            </>
          )}
        </>
      )}
      {hasKey && (
        <p class="muted">
          The client takes the key from the environment variable <code>{VARIABLE}</code>, so that no file contains it.
        </p>
      )}
    </>
  );
}
