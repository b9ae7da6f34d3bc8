import { openApiText } from '../lib/openapi/document.ts';
import type { AppHandler } from './context.ts';

/** Handles `GET /openapi.json`: returns the OpenAPI contract of both APIs, which is built at the first request. */
export function contract(): AppHandler {
  let text: string | undefined;
  return () => {
    text ??= openApiText();
    return new Response(text, { headers: { 'content-type': 'application/json' } });
  };
}
