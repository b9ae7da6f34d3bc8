/**
 * Tells whether a customer asks for a refund in a mail. Throws `Error` if Assay answers with an error. This stands for
 * your own code that sends requests to Assay: `fetch` sends them over the network, or to an app in the same process.
 */
export async function wantsRefund(mail: string, fetch: (request: Request) => Promise<Response>): Promise<boolean> {
  const request = new Request('http://localhost/decide', {
    method: 'POST',
    headers: { authorization: 'Bearer demo', 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'example/keywords',
      context: mail,
      question: 'What does the customer want?',
      options: ['refund', 'exchange'],
    }),
  });
  const response = await fetch(request);
  if (!response.ok) throw new Error(`Assay said ${response.status}: ${await response.text()}`);
  const { value } = (await response.json()) as { value: string };
  return value === 'refund';
}
