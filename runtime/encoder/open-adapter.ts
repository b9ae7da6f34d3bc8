import type { EncoderContract } from '../contracts/encoder-contracts.ts';
import { inWords } from '../contracts/question.ts';
import type { Adapter } from './adapter.ts';
import { gliclassAdapter } from './contracts/gliclass.ts';
import { gliner2Adapter } from './contracts/gliner2.ts';
import { markerAdapter } from './contracts/marker.ts';
import { openJevAdapter } from './contracts/open-jev.ts';
import { nliAdapter, openDecisionAdapter } from './contracts/pairs.ts';
import type { EncoderTokenizer } from './encoder-tokenizer.ts';

/**
 * Creates the adapter of a contract for a model's tokenizer. Throws `engine_failed` for a tokenizer without the tokens
 * that the contract needs.
 *
 * @param roles names of the model's graphs
 */
export function openAdapter(
  contract: EncoderContract,
  tokenizer: EncoderTokenizer,
  roles: ReadonlySet<string>,
): Adapter {
  const adapter = adapterOf(contract, tokenizer, roles);
  return { ...adapter, decide: (questions, ...about) => adapter.decide(questions.map(inWords), ...about) };
}

function adapterOf(contract: EncoderContract, tokenizer: EncoderTokenizer, roles: ReadonlySet<string>): Adapter {
  switch (contract.name) {
    case 'laya':
    case 'julia':
    case 'jevhome':
    case 'opendecider':
    case 'decision-tune':
      return markerAdapter(contract, tokenizer);
    case 'nli':
      return nliAdapter(contract, tokenizer);
    case 'open-decision':
      return openDecisionAdapter(contract, tokenizer);
    case 'gliclass':
    case 'verdict':
      return gliclassAdapter(contract, tokenizer);
    case 'open-jev':
      return openJevAdapter(contract, tokenizer);
    case 'gliner2':
      return gliner2Adapter(contract, tokenizer, roles);
  }
}
