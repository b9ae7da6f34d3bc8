/**
 * Environment variables for every process that loads onnxruntime. Without them, onnxruntime's builds for Linux and
 * macOS since 1.30 send events and a machine id to their publisher over HTTPS. Source:
 * onnxruntime/core/platform/posix/telemetry.cc.
 */
export const NO_TELEMETRY = { ORT_DISABLE_TELEMETRY: '1' };
