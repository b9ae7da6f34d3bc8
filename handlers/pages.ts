/** Holds one file that a browser or a crawler gets. */
export interface Page {
  contentType: string;
  body: Uint8Array<ArrayBuffer>;
}

/** Maps paths to the files of the playground, the API reference and the documentation: `/playground/main.js`. */
export type Pages = ReadonlyMap<string, Page>;

/** Everything comes from this server and nothing is inline, so a model's output cannot inject a script. */
const POLICY =
  "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/** The API reference's renderer sets styles from its script. */
const styles = (path: string) => (path.startsWith('/docs') ? "style-src 'self' 'unsafe-inline'" : "style-src 'self'");

/** Answers `GET` with one page. */
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
