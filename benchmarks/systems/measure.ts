export interface Cost {
  /** Milliseconds on the clock. */
  ms: number;
  /** Milliseconds of processor time, all threads together: what stays comparable when others use the machine too. */
  cpuMs: number;
}

export async function measure<T>(work: () => Promise<T>): Promise<Cost & { result: T }> {
  const cpu = process.cpuUsage();
  const began = performance.now();
  const result = await work();
  const ms = performance.now() - began;
  const { user, system } = process.cpuUsage(cpu);
  return { result, ms, cpuMs: (user + system) / 1000 };
}
