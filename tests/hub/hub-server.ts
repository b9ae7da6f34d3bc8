import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Fault, type FaultRule, sendWithFault } from './faults.ts';
import type { HubFile, HubRepository } from './repository.ts';

/** One request that the hub or its storage answered. */
export interface SeenRequest {
  on: FaultRule['on'];
  path: string;
  range: string | null;
  authorization: string | null;
  /** Bytes of file content that were sent. */
  sent: number;
}

const TOKEN = 'hf_test';
const PAGE = 3;

/**
 * A small server that speaks the hub's protocol over loopback: model information, paged file tree, `resolve` (small
 * files directly, large ones by a redirect to a storage on another origin), ranges, ETags. Sources: the hub's OpenAPI
 * page, and what `@huggingface/hub` and Python's `huggingface_hub` read (`X-Repo-Commit`, `X-Linked-ETag`,
 * `X-Linked-Size`, `X-Error-Code`, `Link`). Goes wrong on command.
 */
export class HubServer {
  /** `HF_ENDPOINT` for this hub. */
  endpoint = '';
  /** The one token that opens gated and private repositories. */
  readonly token = TOKEN;
  readonly requests: SeenRequest[] = [];
  readonly #repositories = new Map<string, HubRepository>();
  readonly #rules: FaultRule[] = [];
  readonly #hub: Server;
  readonly #storage: Server;
  #storageOrigin = '';

  private constructor() {
    this.#hub = createServer((request, response) => void this.#answerHub(request, response));
    this.#storage = createServer((request, response) => void this.#answerStorage(request, response));
  }

  static async start(...repositories: HubRepository[]): Promise<HubServer> {
    const server = new HubServer();
    server.endpoint = await listen(server.#hub, '127.0.0.1');
    server.#storageOrigin = (await listen(server.#storage, '127.0.0.1')).replace('127.0.0.1', 'localhost');
    for (const repository of repositories) server.put(repository);
    return server;
  }

  put(repository: HubRepository): void {
    this.#repositories.set(repository.id, repository);
  }

  /** Adds a fault; rules are tried in the order added. Returns a function that removes it. */
  fail(rule: FaultRule): () => void {
    this.#rules.push(rule);
    return () => {
      const at = this.#rules.indexOf(rule);
      if (at >= 0) this.#rules.splice(at, 1);
    };
  }

  /** Content bytes sent so far, of one file or of all. */
  bytesSent(path?: string): number {
    return this.requests.filter((r) => path === undefined || r.path === path).reduce((sum, r) => sum + r.sent, 0);
  }

  async stop(): Promise<void> {
    for (const server of [this.#hub, this.#storage]) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  #see(on: FaultRule['on'], path: string, request: IncomingMessage): { seen: SeenRequest; fault: Fault | null } {
    const { range, authorization } = request.headers;
    const seen = { on, path, range: range ?? null, authorization: authorization ?? null, sent: 0 };
    this.requests.push(seen);
    const rule = this.#rules.find((r) => r.on === on && (r.path ?? path) === path && (r.times ?? 1) > 0);
    if (rule?.times !== undefined) rule.times -= 1;
    return { seen, fault: rule?.fault ?? null };
  }

  async #answerHub(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.endpoint);
    const api = /^\/api\/models\/([^/]+\/[^/]+)(?:\/(revision|tree)\/([^/]+))?$/.exec(url.pathname);
    const resolve = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(url.pathname);
    const id = api?.[1] ?? resolve?.[1] ?? '';
    const path = resolve ? decodeURIComponent(resolve[3] ?? '') : (api?.[2] ?? '');
    const { seen, fault } = this.#see(resolve ? 'resolve' : 'api', path, request);
    if (fault?.kind === 'status') return sendStatus(response, fault);
    if (fault?.kind === 'custom') return fault.answer(request, response);
    const repository = this.#repositories.get(id);
    const authorized = request.headers.authorization === `Bearer ${TOKEN}`;
    if (!repository || (repository.access === 'private' && !authorized)) {
      return sendError(response, authorized ? 404 : 401, 'RepoNotFound', 'Invalid username or password.');
    }
    const revision = decodeURIComponent(api?.[3] ?? resolve?.[2] ?? 'main');
    if (!['main', 'HEAD', repository.commit].includes(revision)) {
      return sendError(response, 404, 'RevisionNotFound', `Invalid rev id: ${revision}`);
    }
    if (api?.[2] === 'tree') return this.#sendTree(repository, url, response);
    if (api) return sendJson(response, modelInfo(repository));
    if (repository.access === 'gated' && !authorized) {
      return sendError(response, 401, 'GatedRepo', `Access to model ${id} is restricted. You must have access to it.`);
    }
    const file = repository.files.find((f) => f.path === path);
    if (!file) return sendError(response, 404, 'EntryNotFound', 'Entry not found');
    response.setHeader('X-Repo-Commit', repository.commit);
    response.setHeader('Accept-Ranges', 'bytes');
    if (file.sha256 === null) {
      response.setHeader('ETag', `"${file.oid}"`);
      return sendRange(request, response, file, seen, fault);
    }
    response.setHeader('X-Linked-Size', String(file.content.length));
    response.setHeader('X-Linked-ETag', `"${file.sha256}"`);
    response.writeHead(302, { location: `${this.#storageOrigin}/${repository.id}/${file.sha256}?signature=ok` }).end();
  }

  async #answerStorage(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, namespace, name, sha256] = (request.url ?? '').split(/[/?]/);
    const file = this.#repositories.get(`${namespace}/${name}`)?.files.find((f) => f.sha256 === sha256);
    const { seen, fault } = this.#see('content', file?.path ?? '', request);
    if (fault?.kind === 'status') return sendStatus(response, fault);
    if (fault?.kind === 'custom') return fault.answer(request, response);
    if (!file || !request.url?.endsWith('?signature=ok')) return sendError(response, 403, 'AccessDenied', 'Denied');
    response.setHeader('ETag', `"${file.oid}"`);
    response.setHeader('Accept-Ranges', 'bytes');
    return sendRange(request, response, file, seen, fault);
  }

  /** Three entries a page, so that every test of more files also tests paging. */
  #sendTree(repository: HubRepository, url: URL, response: ServerResponse): void {
    const from = Number(url.searchParams.get('cursor') ?? 0);
    const next = new URL(url);
    next.searchParams.set('cursor', String(from + PAGE));
    if (from + PAGE < repository.files.length) response.setHeader('Link', `<${next}>; rel="next"`);
    const entries = repository.files.slice(from, from + PAGE).map((file) => ({
      type: 'file',
      oid: file.oid,
      size: file.content.length,
      path: file.path,
      ...(file.sha256 ? { lfs: { oid: file.sha256, size: file.content.length, pointerSize: 134 } } : {}),
    }));
    sendJson(response, entries);
  }
}

function modelInfo(repository: HubRepository): unknown {
  return {
    _id: '000000000000000000000001',
    id: repository.id,
    sha: repository.commit,
    private: repository.access === 'private',
    gated: repository.access === 'gated' ? 'manual' : false,
    downloads: 0,
    likes: 0,
    lastModified: '2026-01-01T00:00:00.000Z',
    pipeline_tag: 'text-generation',
    siblings: repository.files.map((file) => ({ rfilename: file.path })),
  };
}

async function sendRange(
  request: IncomingMessage,
  response: ServerResponse,
  file: HubFile,
  seen: SeenRequest,
  fault: Fault | null,
): Promise<void> {
  const size = file.content.length;
  const match = fault?.kind === 'no-ranges' ? null : /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
  const start = match ? Number(match[1]) : 0;
  const end = match?.[2] ? Math.min(Number(match[2]) + 1, size) : size;
  if (match && start >= size) {
    response.writeHead(416, { 'content-range': `bytes */${size}` }).end();
    return;
  }
  response.statusCode = match ? 206 : 200;
  if (match) response.setHeader('Content-Range', `bytes ${start}-${end - 1}/${size}`);
  if (fault?.kind !== 'short') response.setHeader('Content-Length', end - start);
  if (request.method === 'HEAD') {
    response.end();
    return;
  }
  // Counted before it is written, so that a client that has everything finds the count complete.
  const count = (bytes: number) => {
    seen.sent += bytes;
  };
  await sendWithFault(response, file.content.subarray(start, end), { fileOffset: start, fault, count });
}

function sendJson(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function sendError(response: ServerResponse, status: number, code: string, message: string): void {
  response.setHeader('X-Error-Code', code);
  response.setHeader('X-Error-Message', message);
  sendJson(response, { error: message }, status);
}

function sendStatus(response: ServerResponse, fault: Fault & { kind: 'status' }): void {
  for (const [name, value] of Object.entries(fault.headers ?? {})) response.setHeader(name, value);
  sendJson(response, fault.body ?? { error: `status ${fault.status}` }, fault.status);
}

async function listen(server: Server, host: string): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return `http://${host}:${(server.address() as AddressInfo).port}`;
}
