import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * Whether this machine's processor multiplies 8-bit integers four at a time (AVX512-VNNI, AVX-VNNI, Arm DotProd). With them 8
 * bits are the fastest form; without, 8-bit products saturate on older Intel processors and are slow elsewhere.
 */
export function hasInt8Products(): boolean {
  try {
    if (process.platform === 'linux') {
      return /\b(avx512_vnni|avx_vnni|asimddp)\b/.test(readFileSync('/proc/cpuinfo', 'utf8'));
    }
    if (process.platform === 'darwin') {
      const answer = execFileSync('/usr/sbin/sysctl', ['-n', 'hw.optional.arm.FEAT_DotProd'], { encoding: 'utf8' });
      return answer.trim() === '1';
    }
  } catch {
    // Unknown is no: 4 bits work everywhere.
  }
  return false;
}
