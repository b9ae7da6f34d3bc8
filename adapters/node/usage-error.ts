/**
 * Reports that the command line or its environment cannot be used as it is. The message says what to change. Exit code
 * 2 (docs/cli.md).
 */
export class UsageError extends Error {}
