import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { hashSecret } from '../../../lib/keys.ts';

// Run by `npm run dev:edge`. Starts two Assay servers (boxes) and an edge in front of them on this machine.
// EDGE_PORT sets the edge's port (default 8787), and ASSAY_API_KEY the key that it accepts (default: a new one). The
// boxes use ~/.assay and all other variables, as `assay serve` does.

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const WRANGLER = join(ROOT, 'node_modules/wrangler/bin/wrangler.js');
/** Folder in which this run stores the KV namespace and the Durable Objects. */
const STATE = join(ROOT, '.wrangler/dev-edge');
const BOXES = ['box-1', 'box-2'];

const { ASSAY_API_KEY, EDGE_PORT, PORT: _, ...rest } = process.env;
const env = { ...rest, WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' };
const port = EDGE_PORT || '8787';
const key = ASSAY_API_KEY || `sk-assay-${randomBytes(24).toString('base64url')}`;
const upstreamKey = `sk-assay-${randomBytes(24).toString('base64url')}`;
const model = rest.ASSAY_MODEL || 'assay/starter';

/** Number of lines of a process, from the first on, that are kept for `waitForLine` to search. */
const MOST_LINES = 200;
const children: Child[] = [];
let stopping = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void stopAll(0));

try {
  if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535)
    throw new Error('EDGE_PORT must be a port number, such as 8787.');
  const urls = await Promise.all(BOXES.map(startUpstream));
  await rm(STATE, { recursive: true, force: true });
  await putKey();
  await startEdge(urls);
  console.log(greeting());
  const [code] = await Promise.all([Promise.race(children.map(({ ended }) => ended))]);
  await stopAll(code);
} catch (error) {
  if (!stopping) console.error(error instanceof Error ? error.message : error);
  await stopAll(1);
}

async function startUpstream(name: string): Promise<string> {
  const args = [join(ROOT, 'adapters/node/bin.ts'), 'serve', '--port', '0', '--log-level', 'warn'];
  const upstream = startChild(name, args, { ...env, ASSAY_API_KEY: upstreamKey });
  children.push(upstream);
  const [url] = await upstream.waitForLine(/http:\/\/127\.0\.0\.1:\d+/);
  await upstream.waitForLine(/is ready|is not loaded/);
  return url;
}

/** Stores the API key that callers use in the edge's KV namespace. */
async function putKey(): Promise<void> {
  const value = JSON.stringify({ name: 'dev', scopes: ['admin'] });
  const args = ['kv', 'key', 'put', '--local', '--persist-to', STATE, '--env', '', '--binding', 'KEYS'];
  await promisify(execFile)(process.execPath, [WRANGLER, ...args, await hashSecret(key), value], { cwd: ROOT, env });
}

async function startEdge(urls: readonly string[]): Promise<void> {
  const upstreams = urls.map((url, i) => ({ name: BOXES[i], url, key_secret: 'BOX_KEY', models: [model] }));
  // A file, because every account of the machine can read the arguments of a process.
  const secrets = join(STATE, 'secrets');
  await writeFile(secrets, `BOX_KEY=${upstreamKey}\n`, { mode: 0o600 });
  const vars = ['--var', `BOXES:${JSON.stringify(upstreams)}`, '--env-file', secrets];
  const state = ['--persist-to', STATE, '--show-interactive-dev-session', 'false', '--inspector-port', '0'];
  const args = [WRANGLER, 'dev', '--env', '', '--ip', '127.0.0.1', '--port', port, ...state, ...vars];
  const edge = startChild('edge', args, env);
  children.push(edge);
  await edge.waitForLine(/Ready on/);
}

function greeting(): string {
  const url = `http://127.0.0.1:${port}`;
  const body = {
    model,
    context: 'The invoice is due on 3 May.',
    tasks: [{ type: 'decide', name: 'due', question: 'When is it due?' }],
  };
  return [
    '',
    `The edge listens on ${url} and forwards to ${BOXES.join(' and ')}. Ctrl-C stops everything. Try:`,
    '',
    `curl ${url}/v1/tasks -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" \\`,
    `  -d '${JSON.stringify(body)}'`,
    '',
  ].join('\n');
}

async function stopAll(code: number): Promise<void> {
  if (stopping) return;
  stopping = true;
  await Promise.all(children.map((child) => child.stop()));
  process.exit(code);
}

interface Child {
  /**
   * Resolves to the first match of `line` in the first 200 lines of the process, including those printed already.
   * Rejects if the process ends without a match.
   */
  waitForLine(line: RegExp): Promise<RegExpMatchArray>;
  /** Resolves to the exit code when the process ends; to 1 if a signal ended it. */
  ended: Promise<number>;
  /** Ends the process with SIGTERM, or with SIGKILL if it still runs after five seconds. */
  stop(): Promise<void>;
}

/**
 * Starts Node with `args` and prints its output, each line after `name` in brackets. `env` is its whole environment.
 */
function startChild(name: string, args: readonly string[], env: NodeJS.ProcessEnv): Child {
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number>((resolve) => child.once('exit', (code) => resolve(code ?? 1)));
  const lines: string[] = [];
  let stopping = false;
  const newLine = new EventTarget();
  for (const stream of [child.stdout, child.stderr]) {
    createInterface(stream).on('line', (line) => {
      // While stopping, messages that wrangler's own child processes print when they end are dropped; they mean
      // nothing.
      const shown = line.trim() !== '' && !(stopping && stream === child.stderr);
      if (shown) console.log(`[${name}] ${line}`);
      if (lines.length < MOST_LINES) lines.push(line);
      newLine.dispatchEvent(new Event('line'));
    });
  }
  const waitForLine = (wanted: RegExp) =>
    new Promise<RegExpMatchArray>((resolve, reject) => {
      const look = () => {
        const match = lines.map((line) => wanted.exec(line)).find((found) => found !== null);
        if (match) resolve(match);
      };
      newLine.addEventListener('line', look);
      look();
      void ended.then((code) => reject(new Error(`${name} ended with status ${code} too early; see its lines above.`)));
    });
  return {
    waitForLine,
    ended,
    stop() {
      stopping = true;
      return stop(child, ended);
    },
  };
}

async function stop(child: ChildProcess, ended: Promise<number>): Promise<void> {
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), 5_000);
  await ended;
  clearTimeout(late);
}
