/** Holds one file of the web pages. */
export interface StaticPage {
  contentType: string;
  body: Uint8Array<ArrayBuffer>;
}

/**
 * Maps URL paths, such as `/playground/main.js`, to the files of the playground, the API reference and the
 * documentation.
 */
export type Pages = ReadonlyMap<string, StaticPage>;

/**
 * Content security policy of all pages. Everything is loaded from this server and inline scripts are forbidden, so a
 * model's output shown on a page cannot run as a script.
 */
const POLICY =
  "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; media-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/**
 * Returns the content security policy for the styles of a page. Only `/docs` may have inline styles: the script that
 * renders the API reference sets them.
 */
const styles = (path: string) => (path.startsWith('/docs') ? "style-src 'self' 'unsafe-inline'" : "style-src 'self'");

/**
 * Returns the handler of `GET` for one file of the web pages. The URL path `path` selects the content security policy.
 */
export function page(path: string, { contentType, body }: StaticPage): () => Response {
  const headers = {
    'content-type': contentType,
    'content-security-policy': `${POLICY}; ${styles(path)}`,
    'cache-control': 'no-cache',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  };
  return () => new Response(body, { headers });
}
