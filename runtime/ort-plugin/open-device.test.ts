import { expect, it } from 'vitest';
import { loadFailureReason } from './open-device.ts';

it.each([
  [
    '/onnxruntime_src/onnxruntime/core/providers/webgpu/webgpu_context.cc:136 onnxruntime::webgpu::WebGpuContext::Initialize(const onnxruntime::webgpu::WebGpuContextConfig&)::<lambda()> adapter_result.status == wgpu::RequestAdapterStatus::Success was false. Failed to get a WebGPU adapter: No supported adapters\n',
    'Failed to get a WebGPU adapter: No supported adapters',
  ],
  [
    'Failed to load library /home/a/plugins/cuda.so with error: libcudart.so.12: cannot open shared object file: No such file or directory',
    'libcudart.so.12: cannot open shared object file: No such file or directory',
  ],
  [
    'no available backend found. ERR: [dml] backend not found.',
    'no available backend found. ERR: [dml] backend not found',
  ],
  ['Load model from /home/a/model.onnx failed: bad opset', 'Load model from model.onnx failed: bad opset'],
  ['Load model from C:\\Users\\a\\model.onnx failed', 'Load model from model.onnx failed'],
  ['1/2 of and/or', '1/2 of and/or'],
])('shortens %j', (message, words) => {
  expect(loadFailureReason(new Error(message))).toBe(words);
});
