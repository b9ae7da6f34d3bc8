/**
 * Environment of every process that loads onnxruntime. Since 1.30 its builds for Linux and macOS otherwise send events
 * and a machine id to their makers over HTTPS. Source: onnxruntime/core/platform/posix/telemetry.cc.
 */
export const NO_TELEMETRY = { ORT_DISABLE_TELEMETRY: '1' };
