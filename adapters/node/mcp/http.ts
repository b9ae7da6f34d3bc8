import { createMcpHandler } from '@modelcontextprotocol/server';
import { Hono } from 'hono';
import { requireKey } from '../../../handlers/auth.ts';
import type { AppEnv } from '../../../handlers/context.ts';
import { errorResponse } from '../../../handlers/error-response.ts';
import { guard } from '../../../handlers/guard.ts';
import { AssayError } from '../../../lib/errors.ts';
import type { Access } from '../access.ts';
import { type Ask, createMcpServer } from './tools.ts';

/**
 * Creates a Hono app with MCP's streamable HTTP endpoint at `/mcp`. Any process of this machine could call it, so the
 * Host, Origin and key rules of the server apply (docs/interface.md, M-18 and D-30).
 */
export function mcpOverHttp(ask: Ask, { keys, guard: settings }: Pick<Access, 'keys' | 'guard'>): Hono<AppEnv> {
  const handler = createMcpHandler(() => createMcpServer(ask));
  const app = new Hono<AppEnv>();
  app.onError((error) => errorResponse(error, 'models'));
  app.notFound(() =>
    errorResponse(new AssayError('route_not_found', 'This path has nothing. Send MCP requests to /mcp.'), 'models'),
  );
  app.use(guard(settings));
  app.all('/mcp', requireKey(keys), (c) => handler.fetch(c.req.raw));
  return app;
}
