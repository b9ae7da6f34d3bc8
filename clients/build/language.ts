/** Describes the steps of `npm run clients` for one language. */
export interface Language {
  name: string;
  /** Its folder, which gets the licence. */
  home: string;
  /** Returns why this machine cannot even generate the client, or null. */
  missing(): string | null;
  /** Writes the generated sources. */
  generate(): Promise<void>;
  /** Returns why this machine cannot build the package, or null. Absent: it can. */
  notPacked?(): string | null;
  /** Builds the package and puts it into `clients/dist/`. */
  pack(): Promise<void>;
  /** Returns why this machine cannot run the tests, or null. Absent: it can. */
  notTested?(): string | null;
  /** Runs the tests against running servers. */
  test(urls: ServerUrls): Promise<void>;
}

/** Holds the environment variables for the tests of the packages. */
export interface ServerUrls extends Record<string, string> {
  ASSAY_CASES_URL: string;
  ASSAY_STARTER_URL: string;
  /**
   * A server without models that uses a hub: `acme/qwen3` (slow to download), `acme/llama` and, gated, `acme/gated`.
   */
  ASSAY_HUB_URL: string;
  /** The folder of its downloads. */
  ASSAY_HUB_CACHE: string;
}
