import { type Draft, newTask, tasksRequest } from './task.ts';

export interface InputExample {
  title: string;
  make(): Draft;
}

/** The example that the page shows first. */
export const complaint: InputExample = {
  title: 'A complaint',
  make: () => ({
    context: 'The parcel came two weeks late and the mug was broken. I want my money back.',
    tasks: [
      newTask({ type: 'decide', name: 'refund', text: 'Does the customer ask for a refund?', list: 'yes\nno' }),
      newTask({
        type: 'decide',
        name: 'topic',
        text: 'What is the message about?',
        list: 'delivery\nbilling\npraise',
      }),
      newTask({
        type: 'extract',
        name: 'facts',
        text: 'What was broken, and how late was it?',
        list: 'broken_item\ndelay',
      }),
    ],
    maxOutputTokens: 64,
  }),
};

export const INPUT_EXAMPLES: readonly InputExample[] = [
  complaint,
  {
    title: 'An invoice',
    make: () => ({
      context:
        'Invoice 2041 from Ardent Tools Ltd, dated 3 March 2026. Two cordless drills at 89.00 EUR each. Total due: 178.00 EUR by 2 April 2026.',
      tasks: [
        newTask({
          type: 'extract',
          name: 'invoice',
          text: 'Extract the fields of the invoice.',
          list: 'number\nvendor\ntotal\ndue_date',
        }),
        newTask({ type: 'decide', name: 'currency', text: 'Which currency is used?', list: 'EUR\nUSD\nGBP' }),
      ],
      maxOutputTokens: 96,
    }),
  },
  {
    title: 'A support ticket',
    make: () => ({
      context:
        'Since the update this morning nobody in our office can log in. We are 40 people and cannot work. Please call Dana Whitfield at 555-0142.',
      tasks: [
        newTask({ type: 'decide', name: 'urgent', text: 'Is this urgent?', list: 'yes\nno' }),
        newTask({
          type: 'decide',
          name: 'team',
          text: 'Which team should handle it?',
          list: 'accounts\nhardware\nsales',
        }),
        newTask({ type: 'extract', name: 'contact', text: 'Who should be called?', list: 'name\nphone' }),
      ],
      maxOutputTokens: 64,
    }),
  },
  {
    title: 'Extractions',
    make: () => ({
      context:
        'Invoice INV-7 issued on 2 March 2026, net 30 days, total 1,080.00 USD. Contacts: Dana Whitfield, Priya Nair.',
      tasks: [
        newTask({
          type: 'fields',
          name: 'invoice',
          text: '',
          list: 'invoice number\ntotal: number\nissued: date\ncontacts: list\nphone',
        }),
      ],
      maxOutputTokens: 256,
    }),
  },
  {
    title: 'Unsure and many labels',
    make: () => ({
      context:
        'Hello, the app crashes whenever I open a photo, and the update made the menus much slower. Can you move us to yearly billing? Thanks, Priya.',
      tasks: [
        newTask({
          type: 'multi',
          name: 'topics',
          text: 'What does the customer write about?',
          list: 'a crash\nspeed\nbilling\na lost password',
        }),
        newTask({
          type: 'decide',
          name: 'plan',
          text: 'Which plan does the customer have?',
          list: 'free\nteam\nenterprise',
          unsure: true,
        }),
        newTask({
          type: 'decide',
          name: 'system',
          text: 'Which operating system does the customer use?',
          list: 'Windows\nmacOS\nLinux',
          unsure: true,
        }),
      ],
      maxOutputTokens: 64,
    }),
  },
];

/** Tells whether a draft is an unchanged example, so that nothing is lost if another example replaces it. */
export function isExample(draft: Draft): boolean {
  const text = (it: Draft) => JSON.stringify(tasksRequest(it, ''));
  return INPUT_EXAMPLES.some(({ make }) => text(make()) === text(draft));
}
