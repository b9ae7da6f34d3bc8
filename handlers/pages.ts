/** Holds one file of the web pages. */
export interface Page {
  contentType: string;
  body: Uint8Array<ArrayBuffer>;
}

/**
 * Maps URL paths, such as `/playground/main.js`, to the files of the playground, the API reference and the
 * documentation.
 */
export type Pages = ReadonlyMap<string, Page>;

/**
 * Content security policy. Pages load everything from this server and contain no inline scripts, so a model's output
 * cannot inject one.
 */
const POLICY =
  "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/** Returns the policy for styles: the renderer of the API reference sets styles from its script. */
const styles = (path: string) => (path.startsWith('/docs') ? "style-src 'self' 'unsafe-inline'" : "style-src 'self'");

/** Returns the handler of `GET` for one page. */
export function page(path: string, { contentType, body }: Page): () => Response {
  const headers = {
    'content-type': contentType,
    'content-security-policy': `${POLICY}; ${styles(path)}`,
    'cache-control': 'no-cache',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  };
  return () => new Response(body, { headers });
}
