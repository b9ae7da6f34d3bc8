/** Describes the steps of `npm run clients` for one language. */
export interface Language {
  name: string;
  /** Folder of the package, into which the licence is copied. */
  home: string;
  /** Returns the reason why this machine cannot generate the client, or null if it can. */
  missing(): string | null;
  /** Writes the generated sources. */
  generate(): Promise<void>;
  /** Returns the reason why this machine cannot build the package, or null if it can; absent if it always can. */
  notPacked?(): string | null;
  /** Builds the package and puts it into `clients/dist/`. */
  pack(): Promise<void>;
  /** Returns the reason why this machine cannot run the tests, or null if it can; absent if it always can. */
  notTested?(): string | null;
  /** Runs the tests against running servers. */
  test(urls: ServerUrls): Promise<void>;
}

/** Holds the environment variables for the tests of the packages. */
export interface ServerUrls extends Record<string, string> {
  ASSAY_CASES_URL: string;
  ASSAY_STARTER_URL: string;
  /**
   * Server without a loaded model that downloads from a test hub with the models `acme/qwen3` (slow to download),
   * `acme/llama` and `acme/gated` (access is gated).
   */
  ASSAY_HUB_URL: string;
  /** Folder into which that server downloads. */
  ASSAY_HUB_CACHE: string;
}
