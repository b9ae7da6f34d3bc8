import { createServer, type Server, type ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { AssayError } from '../../lib/errors.ts';
import { endedByShutdown } from '../../runtime/supervisor/life-cycle.ts';
import { answerBadHttp, badHttp, endWith } from './bad-http.ts';
import { type ConnectionFigures, Connections } from './connections.ts';
import { slowGuesses } from './guesses.ts';
import { isLoopback } from './loopback.ts';
import { UsageError } from './usage-error.ts';

/** Limits of every connection. `lib/json/body.ts` limits the bytes of a body while it reads them. */
const LIMITS = {
  /** Milliseconds in which all headers of a request must arrive; limits clients that send slowly, as does the next. */
  headersTimeout: 15_000,
  /** Milliseconds in which the whole request must arrive. */
  requestTimeout: 120_000,
  keepAliveTimeout: 15_000,
  connectionsCheckingInterval: 5_000,
  /** Milliseconds without progress after which a client that does not read its response is disconnected. */
  unreadTimeout: 30_000,
  /** Bytes of all headers together. */
  maxHeaderSize: 16 * 1024,
  /** Requests after which a connection is closed, so that none is tied to one server for ever. */
  maxRequestsPerSocket: 10_000,
  /** False: Node accepts requests without a Host, and the handlers refuse them like those with a foreign Host. */
  requireHostHeader: false,
};
/** Milliseconds that a request that is still arriving has left once the server stops. */
const SENDING_MS = 2_000;
/** Milliseconds in which the answers to requests that were ended by the shutdown must be written. */
const LAST_WORDS_MS = 1_000;

/** Represents a server that accepts connections. */
export interface RunningServer {
  /** URL of the server, such as `http://127.0.0.1:8080`; with `localhost` if it listens on every interface. */
  url: string;
  /** Returns how many connections there are. */
  figures(): ConnectionFigures;
  /** Makes every further answer the last of its connection, so that clients connect anew, elsewhere. */
  endConnections(): void;
  /**
   * Stops accepting connections. Running requests have `graceMs` milliseconds to finish, and requests that are still
   * arriving have two seconds and are then refused. After the grace period, calls `cut`, which must make the running
   * requests fail, and closes their connections once the failures are written. Resolves to true if all finished in
   * time.
   */
  close(graceMs: number, cut?: () => Promise<void>): Promise<boolean>;
}

interface ListenSettings {
  host: string;
  port: number;
  limits?: Partial<typeof LIMITS>;
  /**
   * Maximum number of connections. Default: `maxConnections`.
   */
  most?: number;
  /**
   * Descriptor of a socket that already listens at that address (systemd's socket activation); null or absent: none.
   */
  activated?: number | null;
}

/**
 * Serves `fetch` over HTTP, at `host` and `port` or at the socket `activated`. Throws `UsageError` if the server cannot
 * listen there, or if only one of `host` and the socket's address is a loopback address.
 */
export async function startServer(
  fetch: (request: Request) => Response | Promise<Response>,
  { host, port, limits, most, activated }: ListenSettings,
): Promise<RunningServer> {
  const server = createServer({ ...LIMITS, ...limits });
  server.maxRequestsPerSocket = LIMITS.maxRequestsPerSocket;
  answerBadHttp(server);
  server.on('request', (_, response) => endWhenUnread(response, limits?.unreadTimeout ?? LIMITS.unreadTimeout));
  let ending = false;
  server.on('request', (_, response) => {
    if (ending) response.shouldKeepAlive = false;
  });
  const connections = new Connections(
    server,
    getRequestListener(slowGuesses(fetch), { errorHandler: unreadable }),
    most,
  );
  await listen(server, host, port, activated ?? null);
  const address = server.address();
  // `host` decides whether keys and Hosts are checked (docs/model-api.md, M-18 and M-19). A socket that other machines
  // reach while `host` is a loopback address would therefore be open to them without a key.
  if (address === null || typeof address === 'string' || (activated != null && !isSameReach(address.address, host))) {
    server.close();
    throw new UsageError(
      `The socket that systemd opened does not match --host ${host}. Give both units the same address.`,
    );
  }
  return {
    url: `http://${urlHost(host)}:${address.port}`,
    figures: () => connections.figures,
    endConnections() {
      ending = true;
    },
    close: (graceMs, cut) => close(server, connections, graceMs, cut),
  };
}

const isSameReach = (address: string, host: string): boolean => isLoopback(address) === isLoopback(host);

/** Returns the response to a request whose Host header is not a host name, from which no `Request` can be made. */
const unreadable = () =>
  badHttp(new AssayError('forbidden_origin', 'The Host header is not a host name. Send one such as 127.0.0.1:8080.'));

/**
 * Disconnects the client of a response if it reads nothing for `timeoutMs` while bytes wait for it. It would otherwise
 * keep its connection open for ever.
 */
function endWhenUnread(response: ServerResponse, timeoutMs: number): void {
  response.setTimeout(timeoutMs, () => {
    // Without bytes to write, the response is still being computed, which may take long.
    if (response.writableLength > 0) response.destroy();
  });
}

function listen(server: Server, host: string, port: number, activated: number | null): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(new UsageError(inWords(error, host, port))));
    server.listen(activated === null ? { host, port } : { fd: activated }, resolve);
  });
}

function inWords(error: NodeJS.ErrnoException, host: string, port: number): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return `Port ${port} of ${host} is in use. Stop the program that has it, or take another one: --port ${port + 1}`;
    case 'EACCES':
      return `Port ${port} needs more rights than you have. Take one above 1023: --port 8080`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `This machine has no address ${host}. Take --host 127.0.0.1, or --host 0.0.0.0 for all of them.`;
    default:
      return `Cannot listen on ${host} port ${port}: ${error.message}. Choose another address with --host and --port.`;
  }
}

/** Returns the host of the server's URL. An address that stands for every interface becomes `localhost`. */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}

async function close(
  server: Server,
  connections: Connections,
  graceMs: number,
  cut?: () => Promise<void>,
): Promise<boolean> {
  const closed = new Promise<true>((resolve) => server.close(() => resolve(true)));
  // `server.close` ends only connections that are idle now; keep-alive would keep those that become idle later.
  const sweep = setInterval(() => server.closeIdleConnections(), 50);
  let inTime = true;
  const timers = [
    setTimeout(() => {
      const arriving = connections.requests.filter(({ request }) => !request.complete);
      if (arriving.length > 0) inTime = false;
      for (const { request, response } of arriving) {
        if (response.headersSent) request.socket.destroy();
        else endWith(request.socket, endedByShutdown());
      }
      // Node does not count a connection without a complete request as idle, so `closeIdleConnections` never ends it.
      const busy = new Set(connections.requests.map(({ request }) => request.socket));
      for (const socket of connections.sockets) if (!busy.has(socket)) socket.destroy();
    }, SENDING_MS),
    setTimeout(async () => {
      inTime = false;
      if (cut) {
        await cut();
        await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, LAST_WORDS_MS))]);
      }
      server.closeAllConnections();
    }, graceMs),
  ];
  await closed;
  for (const timer of [sweep, ...timers]) clearTimeout(timer);
  return inTime;
}
