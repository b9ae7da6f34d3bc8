/** The version of the HTTP API and of this package (docs/interface.md, D-32). */
export const VERSION = '0.5.0';
