/** A gateway with some MCP servers, for the tests. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createInterface } from 'node:readline';

const PROGRAM = process.env['TOOLYARD'] ?? 'toolyard';
const SERVER = fileURLToPath(new URL('server.ts', import.meta.url));

/** Gateways that run. They end with the tests, also if one of them fails. */
const running = new Set<ChildProcess>();
process.on('exit', () => running.forEach((program) => program.kill('SIGKILL')));

/** A server: its name, its kind and the number of its tools. */
export type Server = [name: string, kind: 'plain' | 'hostile' | 'failing', tools?: number];

export interface GatewayOptions {
  servers: Server[];
  /** Environment of the servers. */
  env?: Record<string, string>;
  /** Settings of the process. */
  process?: Record<string, unknown>;
}

export interface ApiOptions {
  method?: string;
  key?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

export class Gateway {
  /** Address of the console. */
  readonly url: string;
  private readonly program: ChildProcess;
  private readonly folder: string;

  private constructor(url: string, program: ChildProcess, folder: string) {
    this.url = url;
    this.program = program;
    this.folder = folder;
  }

  /** Starts a gateway and waits until its servers have answered or failed. */
  static async start({ servers, env = {}, process: settings = {} }: GatewayOptions): Promise<Gateway> {
    const folder = mkdtempSync(join(tmpdir(), 'console-'));
    const handlers = servers.map(([name, kind, tools = 10]) => ({
      name,
      type: 'mcp',
      mcpConfig: { transport: 'stdio', command: process.execPath, args: ['--no-warnings', SERVER, kind, String(tools)], env },
    }));
    const registry = { apiVersion: 'omnia.altairalabs.ai/v1alpha1', kind: 'ToolRegistry', metadata: { name: 'tests' }, spec: { handlers } };
    const spec = { store: { memory: true }, sandbox: { isolation: 'best-effort' }, audit: { arguments: 'redacted' }, ...settings };
    const gateway = { apiVersion: 'toolyard.dev/v1alpha1', kind: 'Toolyard', spec };
    const documents = servers.length === 0 ? [gateway] : [registry, gateway];
    // JSON is YAML.
    const file = join(folder, 'toolyard.yaml');
    writeFileSync(file, documents.map((document) => JSON.stringify(document)).join('\n---\n'));
    const program = spawn(PROGRAM, ['serve', '--listen', '127.0.0.1:0', '--output', 'json', '-f', file], {
      env: { ...process.env, TOOLYARD_STATE_DIR: folder, TOOLYARD_LOG: 'error' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    running.add(program);
    program.once('exit', () => running.delete(program));
    const line = await new Promise<string>((resolve, reject) => {
      createInterface({ input: program.stdout as NodeJS.ReadableStream }).once('line', resolve);
      program.once('error', reject);
      program.once('exit', (status) => reject(new Error(`the gateway ended with status ${status}`)));
    });
    const { url } = JSON.parse(line) as { url: string };
    const started = new Gateway(url.replace(/mcp$/, ''), program, folder);
    await started.until('/handlers', (body) => {
      const { handlers: all } = body as { handlers: { phase: string }[] };
      return all.every((handler) => handler.phase === 'Ready' || handler.phase === 'Unavailable');
    });
    return started;
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.program.once('exit', resolve));
    this.program.kill('SIGTERM');
    await ended;
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Sends a request to the REST API, and returns the body of its response. */
  async api(path: string, { method = 'GET', key, body, headers: given = {} }: ApiOptions = {}): Promise<unknown> {
    const headers: Record<string, string> = { 'Content-Type': 'application/json', ...given };
    if (key !== undefined) {
      headers['Authorization'] = `Bearer ${key}`;
    }
    const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const response = await fetch(`${this.url}api/v1${path}`, init);
    if (!response.ok) {
      throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    }
    return response.json();
  }

  /** Creates a key. From the first one on, each request needs a key. */
  async key(scopes: string[], by?: string): Promise<string> {
    const options = { method: 'POST', body: { name: 'tester', scopes }, ...(by === undefined ? {} : { key: by }) };
    const created = (await this.api('/keys', options)) as { key: string };
    return created.key;
  }

  /** Returns the link that `toolyard console` prints. */
  async link(key?: string): Promise<string> {
    const program = spawn(PROGRAM, ['console', '--url', `${this.url}mcp`], {
      env: { ...process.env, TOOLYARD_URL: '', ...(key === undefined ? {} : { TOOLYARD_KEY: key }) },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    program.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
    await new Promise((resolve) => program.once('close', resolve));
    return text.trim();
  }

  /** Waits until the response to a request meets a condition. */
  async until(path: string, condition: (body: unknown) => boolean, key?: string): Promise<void> {
    for (let attempt = 0; attempt < 300; attempt += 1) {
      if (condition(await this.api(path, key === undefined ? {} : { key }))) {
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`${path} did not meet the condition within 30 seconds`);
  }

  /** Returns the processor time of the gateway so far, in seconds. */
  processorTime(): number {
    const stat = readFileSync(`/proc/${this.program.pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ticks = Number(fields[11]) + Number(fields[12]);
    return ticks / 100;
  }
}
