/**
 * Reports an invalid flag, argument, environment variable or file of the command line. The message says what to change.
 * The command ends with exit code 2 (docs/cli.md).
 */
export class UsageError extends Error {}
