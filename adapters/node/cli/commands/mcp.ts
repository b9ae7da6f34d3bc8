import type { Command } from 'commander';
import type { KeyStore } from '../../../../lib/keys.ts';
import type { Access } from '../../access.ts';
import { COMMAND } from '../../command.ts';
import { serverConfig } from '../../config.ts';
import { KeysStore } from '../../keys-file.ts';
import type { AskAs } from '../../mcp/http.ts';
import type { Ask } from '../../mcp/tools.ts';
import { UsageError } from '../../usage-error.ts';
import { type ModelFlags, modelOf } from '../ask.ts';
import { connect, connectionFlags } from '../connection.ts';
import { wholeNumber } from '../parse-flags.ts';
import type { Connection } from '../request.ts';
import { screen } from '../screen.ts';
import { stopSignal } from '../stop-signal.ts';

type McpFlags = ModelFlags & { http?: boolean; port?: number };

const DEFAULT_PORT = 8081;

/** Adds the command `assay mcp`. Imports the MCP SDK only when the command runs. */
export function addMcp(program: Command): void {
  connectionFlags(
    program
      .command('mcp')
      .description('Give agents the tools decide and extract, over the Model Context Protocol (MCP).')
      .option('--http', 'serve streamable HTTP at /mcp on this machine instead of standard input and output')
      .option(
        '--port <number>',
        `port for --http, 0 for any free one (default: ${DEFAULT_PORT})`,
        wholeNumber(0, 65_535),
      )
      .option('--model <id>', 'model to ask (default: the one that the server has loaded)'),
    { json: false },
  )
    .addHelpText('after', MCP_HELP)
    .action(async (flags: McpFlags) => {
      if (flags.port !== undefined && !flags.http) throw new UsageError('--port needs --http: add that flag.');
      const access = flags.http ? await accessOverHttp(flags) : null;
      const asking = asker(flags, access?.keys);
      try {
        if (access) await serveHttp(asking.askAs, access, flags);
        else await serveStdio((...request) => asking.askAs(undefined, ...request));
      } finally {
        await asking.close();
      }
    });
}

const MCP_HELP = `
With a running server, its model answers; without one, the first call loads a model in this process.

In an agent's configuration:
  { "mcpServers": { "assay": { "command": "assay", "args": ["mcp"] } } }

Examples:
  $ assay mcp
  $ assay mcp --http --port 8081    # needs a key: assay keys add agent`;

/**
 * Returns `askAs`, which sends a request with a key (or with the command's own, if undefined), and `close`, which ends
 * the connection. The first request opens the connection, which may load a model, because agents list the tools long
 * before they call one. If opening fails, the next request tries again.
 */
function asker(
  flags: ModelFlags,
  keys: KeyStore | undefined,
): { askAs(key: string | undefined, ...request: Parameters<Ask>): ReturnType<Ask>; close(): Promise<void> } {
  let opened: Promise<{ connection: Connection; loaded: string | null }> | undefined;
  const open = async () => {
    const connection = await connect(flags, { alone: true, ...(keys ? { keys } : {}) });
    return { connection, loaded: connection.url === null ? await modelOf(connection, flags) : null };
  };
  return {
    async askAs(key, path, body, signal) {
      opened ??= open().catch((error: unknown) => {
        opened = undefined;
        throw error;
      });
      const { connection, loaded } = await opened;
      const choosing = path === '/decide' && 'options' in body;
      const model = loaded ?? (await modelOf(connection, flags, choosing));
      return (await connection.request(path, { body: { model, ...body }, signal, key })).json();
    },
    close: async () => (await opened)?.connection.close(),
  };
}

async function serveStdio(ask: Ask): Promise<void> {
  const [{ serveStdio: serve }, { createMcpServer }] = await Promise.all([
    import('@modelcontextprotocol/server/stdio'),
    import('../../mcp/tools.ts'),
  ]);
  const ended = Promise.race([
    new Promise((resolve) => process.stdin.once('end', resolve).once('close', resolve)),
    stopSignal(),
  ]);
  const handle = serve(() => createMcpServer(ask), { onerror: (error) => screen.note(`assay mcp: ${error.message}`) });
  await ended;
  await handle.close();
}

/** Returns the keys that callers over HTTP may use. Throws `UsageError` if there are none. */
async function accessOverHttp(flags: McpFlags): Promise<Access> {
  const { accessOf } = await import('../../access.ts');
  const { home, apiKey, apiKeyFile } = flags;
  const config = serverConfig(
    {
      ...(home === undefined ? {} : { home }),
      ...(apiKey === undefined ? {} : { apiKey }),
      ...(apiKeyFile === undefined ? {} : { apiKeyFile }),
    },
    process.env,
  );
  const access = await accessOf({ ...config, host: '127.0.0.1' }, new KeysStore(config.home));
  if (access.firstKey) throw new UsageError(`MCP over HTTP needs a key. Make one first: ${COMMAND} keys add agent`);
  return access;
}

async function serveHttp(askAs: AskAs, access: Access, flags: McpFlags): Promise<void> {
  const stopped = stopSignal();
  const [{ startServer }, { mcpOverHttp }] = await Promise.all([
    import('../../server.ts'),
    import('../../mcp/http.ts'),
  ]);
  const server = await startServer(mcpOverHttp(askAs, access).fetch, {
    host: '127.0.0.1',
    port: flags.port ?? DEFAULT_PORT,
  });
  screen.line(`assay mcp listens on ${server.url}/mcp. Stop with Ctrl-C.`);
  await stopped;
  await server.close(5_000);
}
