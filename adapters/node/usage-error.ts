/** What was typed, or the place it was typed at, cannot be used as it stands; the message says what to change. Exit code 2 (docs/cli.md). */
export class UsageError extends Error {}
