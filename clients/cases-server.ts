import { readFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { type RunningServer, startServer } from '../adapters/node/server.ts';
import { createApp } from '../handlers/app.ts';
import { depsOf } from '../tests/conformance/stage.ts';
import type { Script } from '../tests/scripted-backend/script.ts';

/**
 * Describes how the server behaves in one attempt: the script of its backend, or a raw response such as one of a proxy.
 */
type Try = Script & {
  /** Members that are added to the response, as a newer server could. */
  adds?: object;
  /** Path that replaces the path of the request, as if the base URL were wrong. */
  path?: string;
  /** True: sends the headers of a response, but never its body. */
  stalls?: true;
  /** True: sends the headers of a response, then a space from time to time, for ever. */
  drips?: true;
  raw?: { status: number; headers: Record<string, string>; body: string };
};

interface Case {
  id: string;
  script?: Try[];
}

/** Holds the requests received for a case, as `GET /seen/<id>` reports them. */
interface Seen {
  attempts: number;
  sent: unknown;
}

const KEYS = { demo: {}, narrow: { models: ['other/*'] } };

/**
 * Serves the real handlers with scripted backends, one for each case of `cases.json`. A client uses the base URL
 * `<url>/cases/<id>`. `GET /seen/<id>` reports the requests of the case and restarts it.
 */
export async function startCasesServer(): Promise<RunningServer> {
  const { cases } = JSON.parse(await readFile(new URL('cases.json', import.meta.url), 'utf8')) as { cases: Case[] };
  const byId = new Map(cases.map((one) => [one.id, one]));
  const seen = new Map<string, Seen>();
  return startServer(
    async (request) => {
      const { pathname } = new URL(request.url);
      const [, kind, id = ''] = pathname.split('/', 3);
      if (kind === 'seen') {
        const told = seen.get(id) ?? { attempts: 0, sent: null };
        seen.delete(id);
        return Response.json(told);
      }
      const one = kind === 'cases' ? byId.get(id) : undefined;
      if (!one) return new Response(`No case ${pathname}`, { status: 404 });
      const body = await request.text();
      const attempts = (seen.get(id)?.attempts ?? 0) + 1;
      seen.set(id, { attempts, sent: JSON.parse(body) });
      return play(one.script?.[Math.min(attempts, one.script.length) - 1] ?? {}, forwarded(request, id, body));
    },
    { host: '127.0.0.1', port: 0 },
  );
}

/** Returns the request with a path that the app knows, without `/cases/<id>`. */
function forwarded(request: Request, id: string, body: string): Request {
  const url = request.url.replace(`/cases/${id}`, '');
  return new Request(url, { method: request.method, headers: request.headers, body, signal: request.signal });
}

async function play({ adds, raw, path, stalls, drips, ...script }: Try, request: Request): Promise<Response> {
  if (raw) return new Response(raw.body, raw);
  if (stalls || drips) {
    const body = new ReadableStream(drips ? { pull: blank } : {});
    return new Response(body, { headers: { 'content-type': 'application/json' } });
  }
  const asked = path === undefined ? request : new Request(new URL(path, request.url), request);
  const response = await createApp(await depsOf({ keys: KEYS }, script, [])).fetch(asked);
  if (!adds) return response;
  return Response.json({ ...((await response.json()) as object), ...adds }, response);
}

async function blank(body: ReadableStreamDefaultController): Promise<void> {
  await setTimeout(100);
  body.enqueue(new TextEncoder().encode(' '));
}

if (import.meta.main) {
  const server = await startCasesServer();
  process.stdout.write(`${server.url}\n`);
}
