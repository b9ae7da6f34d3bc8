import { openApiText } from '../lib/openapi/document.ts';
import type { AppHandler } from './context.ts';

/** Handles `GET /openapi.json`, the contract of both interfaces. Builds it at the first call. */
export function contract(): AppHandler {
  let text: string | undefined;
  return () => {
    text ??= openApiText();
    return new Response(text, { headers: { 'content-type': 'application/json' } });
  };
}
