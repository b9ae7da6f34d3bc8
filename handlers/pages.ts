/** One file that a browser or a crawler gets. */
export interface Page {
  contentType: string;
  body: Uint8Array<ArrayBuffer>;
}

/** The files of the playground, the API reference and the documentation, by their paths: `/playground/main.js`. */
export type Pages = ReadonlyMap<string, Page>;

/** Everything from this server, nothing inline: a page that was tampered with by what a model says can do no harm. */
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
