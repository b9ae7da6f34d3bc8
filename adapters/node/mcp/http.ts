import { createMcpHandler } from '@modelcontextprotocol/server';
import { Hono } from 'hono';
import { requireKey, secretOf } from '../../../handlers/auth.ts';
import type { AppEnv } from '../../../handlers/context.ts';
import { errorResponse } from '../../../handlers/error-response.ts';
import { guard } from '../../../handlers/guard.ts';
import { AssayError } from '../../../lib/errors.ts';
import type { Access } from '../access.ts';
import { type Ask, createMcpServer } from './tools.ts';

/** Sends a request as `Ask` does, with the key `secret`. */
export type AskAs = (secret: string, ...request: Parameters<Ask>) => ReturnType<Ask>;

/**
 * Creates a Hono app with MCP's streamable HTTP endpoint at `/mcp`. Any process of this machine could call it, so the
 * Host, Origin and key rules of the server apply (docs/model-api.md, M-18 and D-30). Each tool call is sent on with the
 * caller's own key, so the models, quota and priority of that key apply, and the log names it.
 */
export function mcpOverHttp(askAs: AskAs, { keys, guard: settings }: Pick<Access, 'keys' | 'guard'>): Hono<AppEnv> {
  // The factory runs for each request.
  const handler = createMcpHandler(({ authInfo }) => {
    const secret = authInfo?.token;
    if (secret === undefined) throw new Error('the request has no key');
    return createMcpServer((...request) => askAs(secret, ...request));
  });
  const app = new Hono<AppEnv>();
  app.onError((error) => errorResponse(error, 'models'));
  app.notFound(() =>
    errorResponse(new AssayError('route_not_found', 'This path has nothing. Send MCP requests to /mcp.'), 'models'),
  );
  app.use(guard(settings));
  app.all('/mcp', requireKey(keys), (c) => {
    const { name, scopes } = c.get('key') ?? { name: '', scopes: [] };
    const token = secretOf(c.req.raw.headers.get('authorization'));
    return handler.fetch(c.req.raw, { authInfo: { token, clientId: name, scopes: [...scopes] } });
  });
  return app;
}
