import { readFileSync } from 'node:fs';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { isIPv6, type Socket } from 'node:net';

const DEFAULT = 1024;
/** Descriptors that stay free for the server's own files, its child processes and downloads. */
const RESERVED = 64;
/** Number of connections that the server accepts even if fewer descriptors remain. */
const MINIMUM = 8;
/** Share of the connections that one address may hold, so that others can always connect. */
const SHARE_OF_ADDRESS = 0.75;

/** Bytes that may wait behind an unanswered request of the same connection; beyond these, the server stops reading. */
const MOST_WAITING_BYTES = 64 * 1024;
/** No request is shorter (`A / HTTP/1.1`), so the end of a request's headers is searched from here. */
const SHORTEST_HEAD = 10;
/** Smallest slice of a chunked body, whose end only the parser knows. */
const CHUNKED_SLICE = 512;
/** Line ends of the largest slice of a chunked body: a chunk has at least two, and costs as much if it is one byte. */
const LINES_OF_SLICE = 64;
/** Slices that one connection may parse before the others have their turn. */
const SLICES_A_TURN = 8;
/**
 * Connections that may go on with waiting bytes in one turn of the event loop. A turn accepts a single new connection,
 * so it must be short.
 */
const CONNECTIONS_A_TURN = 4;
/** Time in ms for which waiting bytes give way to new connections, of which a turn of the event loop accepts one. */
const NEW_ONES_FIRST_MS = 50;

/** Milliseconds that the rest of a body may take after the answer, before the connection is closed. */
const UNREAD_BODY_MS = 500;

/** Reports the connections of a server, for its metrics. */
export interface ConnectionFigures {
  open: number;
  most: number;
  /** Idle connections that gave way to new ones, since the start. */
  evicted: number;
  /** New connections that were closed because none could give way, since the start. */
  refused: number;
}

type Exchange = { request: IncomingMessage; response: ServerResponse };

/**
 * Bounds the connections of a server and what each may ask for at once. Each connection's next request is parsed only
 * after the answer to the one before has been written, so a client that sends without reading stops itself. If all
 * connections are in use, or all of one address, the one that has been idle longest gives way to a new one.
 */
export class Connections {
  readonly #serve: RequestListener;
  readonly #most: number;
  /** The open connections: those that have been idle longest come first. */
  readonly #open = new Map<Socket, Connection>();
  readonly #ofAddress = new Map<string, number>();
  /** Connections with bytes that wait for a turn. */
  readonly #due = new Set<Connection>();
  #evicted = 0;
  #refused = 0;
  /** True if a connection has been accepted since the last turn. */
  #accepted = false;
  /** Holds `performance.now()` of the last turn of waiting bytes. */
  #fedAt = 0;

  /** Takes over the connections and requests of `server`, and answers the requests with `serve`. */
  constructor(server: Server, serve: RequestListener, most = maxConnections()) {
    this.#serve = serve;
    this.#most = most;
    server.on('connection', (socket: Socket) => this.#accept(socket));
    server.on('request', (request, response) => {
      const connection = this.#open.get(request.socket);
      if (connection) connection.arrived({ request, response });
      else response.destroy();
    });
    server.prependListener('clientError', (_, socket) => this.#open.get(socket as Socket)?.stopParsing());
    server.prependListener('connect', (_, socket) => this.#open.get(socket as Socket)?.stopParsing());
  }

  get figures(): ConnectionFigures {
    return { open: this.#open.size, most: this.#most, evicted: this.#evicted, refused: this.#refused };
  }

  /** All open connections. */
  get sockets(): Iterable<Socket> {
    return this.#open.keys();
  }

  /** Requests whose response has not ended. */
  get requests(): Exchange[] {
    return [...this.#open.values()].flatMap(({ exchanges }) => exchanges);
  }

  #accept(socket: Socket): void {
    this.#accepted = true;
    const address = addressOf(socket);
    const mine = this.#ofAddress.get(address) ?? 0;
    const full = this.#open.size >= this.#most;
    if (full || mine >= Math.max(1, Math.floor(this.#most * SHARE_OF_ADDRESS))) {
      const idle = this.#leastUseful(full ? null : address);
      if (!idle) {
        this.#refused++;
        socket.destroy();
        return;
      }
      this.#evicted++;
      idle.socket.destroy();
      this.#forget(idle);
    }
    this.#ofAddress.set(address, (this.#ofAddress.get(address) ?? 0) + 1);
    const connection = new Connection(socket, address, {
      serve: this.#serve,
      // Moves the connection behind those that have been idle longer.
      answered: () => this.#open.delete(socket) && this.#open.set(socket, connection),
      due: () => {
        if (this.#due.size === 0) setImmediate(() => this.#turn());
        this.#due.add(connection);
      },
    });
    this.#open.set(socket, connection);
    socket.once('close', () => this.#forget(connection));
  }

  #turn(): void {
    const time = performance.now();
    const giveWay = this.#accepted && time - this.#fedAt < NEW_ONES_FIRST_MS;
    this.#accepted = false;
    if (giveWay) {
      setImmediate(() => this.#turn());
      return;
    }
    this.#fedAt = time;
    const now = [...this.#due].slice(0, CONNECTIONS_A_TURN);
    for (const connection of now) this.#due.delete(connection);
    if (this.#due.size > 0) setImmediate(() => this.#turn());
    for (const connection of now) connection.feed({ all: true });
  }

  #forget({ socket, address }: Connection): void {
    if (!this.#open.delete(socket)) return;
    const left = (this.#ofAddress.get(address) ?? 1) - 1;
    if (left > 0) this.#ofAddress.set(address, left);
    else this.#ofAddress.delete(address);
  }

  /**
   * Returns the connection that has been idle longest, else the oldest without whole headers, else the oldest without a
   * whole body; of one address, or of all if it is null.
   */
  #leastUseful(address: string | null): Connection | null {
    let headers: Connection | null = null;
    let body: Connection | null = null;
    for (const connection of this.#open.values()) {
      if (address !== null && connection.address !== address) continue;
      if (connection.isIdle) return connection;
      if (connection.exchanges.length === 0) headers ??= connection;
      else if (connection.exchanges.every(({ request }) => !request.complete)) body ??= connection;
    }
    return headers ?? body;
  }
}

interface ConnectionEvents {
  serve: RequestListener;
  /** Reports that no request of the connection is unanswered any more. */
  answered(): void;
  /** Asks for a call of `feed` in a later turn of the event loop. */
  due(): void;
}

/** Feeds the bytes of one connection to Node's parser: those of one request, then no more until it is answered. */
class Connection {
  readonly socket: Socket;
  readonly address: string;
  /** Requests that are not answered: the first is being served; others came in the same slice and wait. */
  readonly exchanges: Exchange[] = [];
  readonly #events: ConnectionEvents;
  /** Node's own listener, which parses what it gets. */
  readonly #parse: ((bytes: Buffer) => void) | null;
  #waiting: Buffer = Buffer.alloc(0);
  /** Bytes of the headers that have been parsed without their end, and the last two of them as text. */
  #headBytes = 0;
  #tail = '';
  /** Bytes that the body of the current request still lacks; infinite for a chunked body. */
  #bodyBytes = 0;
  /** The request whose body is being parsed. */
  #incomplete: IncomingMessage | null = null;
  /** True if the first exchange is being served. */
  #served = false;
  #stopped = false;
  #held = false;

  constructor(socket: Socket, address: string, events: ConnectionEvents) {
    this.socket = socket;
    this.address = address;
    this.#events = events;
    // A cast: listeners of `data` take the bytes.
    const [parse] = socket.listeners('data') as ((bytes: Buffer) => void)[];
    this.#parse = parse ?? null;
    if (!parse) return;
    socket.removeListener('data', parse);
    socket.on('data', (bytes: Buffer) => this.#received(bytes));
    // A held connection goes on after its answer. `resume` is also emitted for one that `feed` has held again since.
    socket.on('resume', () => this.#held || this.#goOnLater());
  }

  /** True if nothing of a request has arrived since the last answer. */
  get isIdle(): boolean {
    return this.exchanges.length === 0 && this.#headBytes === 0 && this.#waiting.length === 0;
  }

  /** Drops everything that arrives from now on: it is no HTTP request. */
  stopParsing(): void {
    this.#stopped = true;
    this.#waiting = Buffer.alloc(0);
  }

  arrived(exchange: Exchange): void {
    const { request, response } = exchange;
    this.#headBytes = 0;
    this.#tail = '';
    this.#incomplete = request;
    const length = request.headers['content-length'];
    this.#bodyBytes = length === undefined ? Number.POSITIVE_INFINITY : Number(length);
    this.exchanges.push(exchange);
    response.once('close', () => {
      this.exchanges.splice(this.exchanges.indexOf(exchange), 1);
      // Node would read a body that nobody wants until the time for a whole request is over.
      if (!request.complete) setTimeout(() => request.complete || this.socket.destroy(), UNREAD_BODY_MS).unref();
      if (this.exchanges.length === 0) this.#events.answered();
      this.#served = false;
      this.#goOnLater();
    });
    if (this.exchanges.length === 1) this.#serveFirst();
  }

  #serveFirst(): void {
    const [first] = this.exchanges;
    if (!first || this.#served || this.socket.destroyed) return;
    this.#served = true;
    this.#events.serve(first.request, first.response);
  }

  #received(bytes: Buffer): void {
    if (this.#stopped) return;
    this.#waiting = this.#waiting.length === 0 ? bytes : Buffer.concat([this.#waiting, bytes]);
    this.feed({ all: false });
  }

  #goOnLater(): void {
    const unserved = this.exchanges.length > 0 && !this.#served;
    if (unserved || (this.#waiting.length > 0 && !this.#stopped)) this.#events.due();
  }

  /**
   * Serves a request that came behind another one, and parses what may be parsed now of the bytes that wait.
   *
   * @param all false to leave chunked and unwanted bodies to a later turn: what many connections send arrives in one
   */
  feed({ all }: { all: boolean }): void {
    this.#serveFirst();
    if (this.#held) this.socket.resume();
    this.#held = false;
    for (let slice = 0; this.#mayParse(); slice++) {
      if (slice === SLICES_A_TURN || (!all && (this.#isChunked || this.#isUnwanted))) {
        this.#goOnLater();
        break;
      }
      const bytes = this.#nextSlice();
      this.#waiting = this.#waiting.subarray(bytes.length);
      this.#parse?.(bytes);
      if (this.#incomplete?.complete) this.#incomplete = null;
    }
    if (this.#waiting.length < MOST_WAITING_BYTES || this.socket.isPaused()) return;
    this.#held = true;
    this.socket.pause();
  }

  /**
   * Tells whether the parser may have more: not while it is paused, and not behind an unanswered request. The slice of
   * a chunked body may hold further requests, of which the last has its body behind them: that waits, too.
   */
  #mayParse(): boolean {
    if (this.#waiting.length === 0 || this.#stopped || this.socket.destroyed || this.socket.isPaused()) return false;
    const [first] = this.exchanges;
    return first === undefined || first.request === this.#incomplete;
  }

  /** True if the bytes that wait begin within the body of a request that has been answered. */
  get #isUnwanted(): boolean {
    return this.#incomplete !== null && this.exchanges.length === 0;
  }

  /** True if the bytes that wait begin within a chunked body. */
  get #isChunked(): boolean {
    return this.#incomplete !== null && this.#bodyBytes === Number.POSITIVE_INFINITY;
  }

  /** Returns the bytes up to the end of the headers or of the body, or all bytes if that end is not among them. */
  #nextSlice(): Buffer {
    const waiting = this.#waiting;
    if (this.#incomplete === null) {
      const slice = waiting.subarray(0, this.#headEnd());
      this.#headBytes += slice.length;
      this.#tail = `${this.#tail}${slice.toString('latin1', Math.max(0, slice.length - 2))}`.slice(-2);
      return slice;
    }
    if (this.#isChunked) {
      return waiting.subarray(0, Math.min(endOfLines(waiting, CHUNKED_SLICE), endOfLine(waiting, LINES_OF_SLICE)));
    }
    const slice = waiting.subarray(0, Math.max(1, this.#bodyBytes));
    this.#bodyBytes -= slice.length;
    return slice;
  }

  #headEnd(): number {
    const split = /\n\r?\n/.exec(`${this.#tail}${this.#waiting.toString('latin1', 0, 2)}`);
    if (split) return split.index + split[0].length - this.#tail.length;
    return endOfLines(this.#waiting, Math.max(0, SHORTEST_HEAD - this.#headBytes));
  }
}

/** Returns the position after the first empty line from `from` on, or the length of the bytes if there is none. */
function endOfLines(bytes: Buffer, from: number): number {
  const found = bytes.indexOf('\n\r\n', from, 'latin1');
  const end = found === -1 ? bytes.length : found + 3;
  // The second search ends where the first has found something, or it would read everything behind it for nothing.
  const bare = bytes.subarray(0, end).indexOf('\n\n', from, 'latin1');
  return bare === -1 ? end : bare + 2;
}

/** Returns the position after so many line ends, or the length of the bytes if there are fewer. */
function endOfLine(bytes: Buffer, count: number): number {
  let end = 0;
  for (let line = 0; line < count; line++) {
    end = bytes.indexOf(0x0a, end) + 1;
    if (end === 0) return bytes.length;
  }
  return end;
}

/**
 * Returns the address whose connections are counted together: of IPv6, the network of 64 bits that a host may choose
 * its address from.
 */
export function addressOf({ remoteAddress = '' }: Pick<Socket, 'remoteAddress'>): string {
  // An IPv4 address on a socket for both versions, or one of IPv4 alone.
  if (!isIPv6(remoteAddress) || remoteAddress.includes('.'))
    return remoteAddress.slice(remoteAddress.lastIndexOf(':') + 1);
  const [left = [], right = []] = remoteAddress.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0');
  return [...left, ...zeros, ...right].slice(0, 4).join(':');
}

/**
 * Returns the maximum number of connections: 1,024, or fewer if the system lets this process open few files
 * (`ulimit -n`). Without that bound, connections would take the last descriptors, and every request that reads a file
 * would fail.
 *
 * @param limits text of `/proc/self/limits` (proc_pid_limits(5)); empty where the system has no such file
 */
export function maxConnections(limits = ownLimits()): number {
  const files = /^Max open files +(\d+)/m.exec(limits)?.[1];
  return files === undefined ? DEFAULT : Math.max(MINIMUM, Math.min(DEFAULT, Number(files) - RESERVED));
}

function ownLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}
