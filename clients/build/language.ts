/** What `npm run clients` does for one language. */
export interface Language {
  name: string;
  /** Why this machine cannot make the package, or null where it can. */
  missing(): string | null;
  /** Writes the generated sources. */
  generate(): Promise<void>;
  /** Why this machine can generate the client but not build it, or null where it can. Absent: it can. */
  notBuilt?(): string | null;
  /** Builds the package and puts it into `clients/dist/`. */
  pack(): Promise<void>;
  /** Plays the tests against running servers. Absent: there are none. */
  test?(urls: ServerUrls): Promise<void>;
}

/** As the tests of the packages get them from the environment. */
export interface ServerUrls extends Record<string, string> {
  ASSAY_CASES_URL: string;
  ASSAY_STARTER_URL: string;
}
