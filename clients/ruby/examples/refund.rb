# frozen_string_literal: true

# Two judgements about one mail, in one request. Run `assay serve` first, and set ASSAY_API_KEY to the key that it prints.
require 'assay'

MAIL = 'Order A-1042 from Lumen Ltd arrived on 3 March with a broken lamp. I have asked twice for my 49.90 euro back. ' \
       'Please refund me today!'

response = Assay.ensure_complete(
  Assay::Client.new.run_tasks(
    model: 'assay/starter',
    context: MAIL,
    tasks: [
      Assay::DecideTask.new(name: 'wants_refund', question: 'Does the customer want a refund?', options: %w[yes no]),
      Assay::ExtractTask.new(name: 'order', instruction: 'Extract the order.', keys: %w[order_id amount])
    ],
    max_output_tokens: 64
  )
)

puts "wants a refund: #{response.results['wants_refund']['value']}"
puts "order: #{response.results['order']}"
