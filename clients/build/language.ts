/** What `npm run clients` does for one language. */
export interface Language {
  name: string;
  /** Its folder, which gets the licence. */
  home: string;
  /** Why this machine cannot even generate the client, or null where it can. */
  missing(): string | null;
  /** Writes the generated sources. */
  generate(): Promise<void>;
  /** Why this machine cannot make the package, or null where it can. Absent: it can. */
  notPacked?(): string | null;
  /** Builds the package and puts it into `clients/dist/`. */
  pack(): Promise<void>;
  /** Why this machine cannot play the tests, or null where it can. Absent: it can. */
  notTested?(): string | null;
  /** Plays the tests against running servers. */
  test(urls: ServerUrls): Promise<void>;
}

/** As the tests of the packages get them from the environment. */
export interface ServerUrls extends Record<string, string> {
  ASSAY_CASES_URL: string;
  ASSAY_STARTER_URL: string;
  /** A server without models that knows a hub: `acme/qwen3` (slow to download), `acme/llama` and, gated, `acme/gated`. */
  ASSAY_HUB_URL: string;
  /** The folder that it keeps downloads in. */
  ASSAY_HUB_CACHE: string;
}
