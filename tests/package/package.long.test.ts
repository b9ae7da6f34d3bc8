import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Packed, packageFigures, packageProblems } from '../../release/package-contents.ts';
import { runWorkers } from '../edge/workerd.ts';
import { env, newFolder, pack, project, run, source } from './pack.ts';

/*
 * The package as its users have it: packed from this checkout, installed into empty projects with its dependencies from
 * the registry, and used from the command line, in plain JavaScript, in strict TypeScript, in Bun and in Deno.
 */

const TSC = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url));
/** Runs no install scripts: none is needed, and onnxruntime-node's would fetch CUDA (docs/cli.md). */
const INSTALL = ['install', '--ignore-scripts', '--no-audit', '--no-fund'];
const TOOLS = ['pnpm@12.21.0', '@oven/bun-linux-x64@1.4.5', '@deno/linux-x64-glibc@2.9.6'];
const hasTools = process.platform === 'linux' && process.arch === 'x64';

let tarball: string;
let packed: Packed;
/** Holds the package, installed by npm. */
let installed: string;

beforeAll(async () => {
  ({ tarball, packed } = await pack());
  installed = await project({ 'keyword-backend.ts': await source('examples/keyword-backend.ts') });
  await run(installed, 'npm', ...INSTALL, tarball, '@types/node@24.19.2');
}, 300_000);

/** Starts the installed server, asks it a decision about a text, and stops it. */
async function decide(folder: string, command: string, ...args: string[]): Promise<unknown> {
  const home = await newFolder();
  const serve = [...args, 'serve', '--port', '0', '--home', home, '--api-key', 'demo', '--log-level', 'warn'];
  const server = spawn(command, serve, { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  try {
    let said = '';
    for await (const chunk of server.stdout) {
      said += chunk;
      if (/is ready on the/.test(said)) break;
    }
    const url = /listens on (http:\/\/\S+)/.exec(said)?.[1];
    const headers = { authorization: 'Bearer demo', 'content-type': 'application/json' };
    const body = JSON.stringify({
      model: 'assay/starter',
      context: 'The server is down and nobody can work.',
      question: 'Is this urgent?',
      options: ['yes', 'no'],
    });
    const answer = await (await fetch(`${url}/decide`, { method: 'POST', headers, body })).json();
    const pages = ['/playground', '/docs', '/llms.txt'].map(async (path) => (await fetch(`${url}${path}`)).status);
    return { value: answer.value, pages: await Promise.all(pages) };
  } finally {
    // The command is a wrapper; the group has the server too.
    if (server.exitCode === null && server.pid) {
      process.kill(-server.pid, 'SIGINT');
      await once(server, 'exit');
    }
  }
}

it('is small, and has runtime files alone', () => {
  console.log(packageFigures(packed));
  expect(packageProblems(packed)).toEqual([]);
});

describe('installed by npm', () => {
  it('serves: npx assay serve loads the starter and answers', { timeout: 120_000 }, async () => {
    expect(await decide(installed, 'npx', 'assay')).toEqual({ value: 'yes', pages: [200, 200, 200] });
  });

  it('has every dependency at the version that it wants', async () => {
    const { stdout } = await run(installed, 'npm', 'ls', '--all', '--json');
    expect(JSON.parse(stdout).problems).toBeUndefined();
    expect((await run(installed, 'npx', 'assay', '--version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it('is imported from plain JavaScript', async () => {
    const script = `
      import { createApp } from 'assay';
      import { serve, serverConfig } from 'assay/node';
      import contract from 'assay/openapi.json' with { type: 'json' };
      console.log(typeof createApp, typeof serve, typeof serverConfig, contract.openapi);`;
    const { stdout } = await run(installed, process.execPath, '--input-type=module', '--eval', script);
    expect(stdout).toBe('function function function 3.1.0\n');
  });

  it('is the edge in a Worker', { timeout: 120_000 }, async () => {
    const contents = "export { default, FleetObject, QuotaObject } from 'assay/workers';";
    const stdin = { contents, resolveDir: installed, loader: 'js' as const };
    const external = ['cloudflare:workers'];
    const { outputFiles } = await build({ stdin, bundle: true, format: 'esm', write: false, external });
    const workers = await runWorkers([
      {
        name: 'edge',
        script: outputFiles[0]!.text,
        bindings: {
          BOXES: [{ name: 'one', url: 'https://box.example', models: ['assay/starter'], key_secret: 'BOX_KEY' }],
          BOX_KEY: 'secret',
        },
        kvNamespaces: { KEYS: 'keys' },
        durableObjects: {
          QUOTA: { className: 'QuotaObject', useSQLite: true },
          FLEET: { className: 'FleetObject', useSQLite: true },
        },
      },
    ]);
    try {
      expect(await (await fetch(workers.urls[0]!)).json()).toMatchObject({ status: 'running' });
      expect((await fetch(`${workers.urls[0]}/v1/models`)).status).toBe(401);
    } finally {
      await workers.close();
    }
  });

  it('type-checks in a strict project, its declarations included', { timeout: 120_000 }, async () => {
    const file = `
      import { createApp, type InferenceBackend } from 'assay';
      import { type Serving, serve, serverConfig } from 'assay/node';
      import edge, { type Env, FleetObject, QuotaObject } from 'assay/workers';
      import { keywordBackend } from './keyword-backend.ts';
      const backend: InferenceBackend = keywordBackend;
      export const app = createApp({ backend });
      export const answer: Response | Promise<Response> = app.fetch(new Request('http://local/'));
      export const server = (...args: Parameters<typeof serve>): Promise<Serving> => serve(...args);
      export const all: unknown[] = [serverConfig, edge, FleetObject, QuotaObject, {} as Env];`;
    const options = {
      ...{ strict: true, skipLibCheck: false, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
      ...{ target: 'ES2024', module: 'NodeNext', noEmit: true, allowImportingTsExtensions: true, types: ['node'] },
    };
    await writeFile(join(installed, 'strict.ts'), file);
    await writeFile(
      join(installed, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: options, files: ['strict.ts'] }),
    );
    const checked = await run(installed, process.execPath, TSC, '-p', '.').catch((error: unknown) => error);
    expect(checked).toMatchObject({ stdout: '' });
  });
});

describe.skipIf(!hasTools)('with other tools', () => {
  let tools: string;
  beforeAll(async () => {
    tools = await project();
    await run(tools, 'npm', ...INSTALL, ...TOOLS);
  }, 120_000);

  it('installed by pnpm, it serves', { timeout: 240_000 }, async () => {
    const folder = await project();
    const pnpm = join(tools, 'node_modules/pnpm/bin/pnpm.mjs');
    await run(folder, process.execPath, pnpm, 'add', '--ignore-scripts', tarball);
    expect(existsSync(join(folder, 'node_modules/.pnpm'))).toBe(true);
    expect(await decide(folder, join(folder, 'node_modules/.bin/assay'))).toMatchObject({ value: 'yes' });
  });

  it.each([
    ['Bun', '@oven/bun-linux-x64/bin/bun', []],
    ['Deno', '@deno/linux-x64-glibc/deno', ['run', '--allow-all', '--no-remote', '--node-modules-dir=manual']],
  ])('%s runs createApp with an injected backend', async (_, binary, flags) => {
    const script = join(installed, 'runtime.ts');
    await writeFile(
      script,
      `import { createApp, hashSecret, listedKeys } from 'assay';
       import { keywordBackend as backend } from './keyword-backend.ts';
       const keys = listedKeys([{ name: 'k', sha256: await hashSecret('k'), models: ['*'], scopes: [] }]);
       const headers = { authorization: 'Bearer k', 'content-type': 'application/json' };
       const body = JSON.stringify({ model: 'example/keywords', context: 'a refund', question: 'What?', options: ['lamp', 'refund'] });
       const response = await createApp({ backend, keys }).fetch(new Request('http://local/decide', { method: 'POST', headers, body }));
       console.log(response.status, (await response.json()).value);`,
    );
    const { stdout } = await run(installed, join(tools, 'node_modules', binary), ...flags, script);
    expect(stdout).toBe('200 refund\n');
  });
});
