/**
 * Reports an invalid or missing flag, argument, environment variable or file. The message says what to change. The
 * command line ends with exit code 2 (docs/cli.md).
 */
export class UsageError extends Error {}
