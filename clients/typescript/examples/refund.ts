// Asks two tasks about one mail in one request, then a choice with probabilities. Run `assay serve` first, and set
// ASSAY_API_KEY to the key that it prints.
import { Assay, ensureComplete } from 'assay-client';

const mail =
  'Order A-1042 from Lumen Ltd arrived on 3 March with a broken lamp. I have asked twice for my 49.90 euro back. Please refund me today!';

const assay = new Assay();
const { results } = ensureComplete(
  await assay.runTasks({
    model: 'assay/starter',
    context: mail,
    tasks: [
      { type: 'decide', name: 'wants_refund', question: 'Does the customer want a refund?', options: ['yes', 'no'] },
      { type: 'extract', name: 'order', instruction: 'Extract the order.', keys: ['order_id', 'amount'] },
    ],
    max_output_tokens: 64,
  }),
);

console.log('wants a refund:', results.wants_refund?.value);
console.log('order:', results.order);

const { answers } = await assay.decisions({
  model: 'assay/starter',
  input: mail,
  questions: [
    {
      type: 'choice',
      instructions: 'Which team should answer?',
      choices: [{ value: 'billing', description: 'Payments and refunds' }, { value: 'shipping' }],
    },
  ],
});
for (const answer of answers) if (answer.type === 'choice') console.log('team:', answer.probabilities);
