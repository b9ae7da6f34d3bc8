# frozen_string_literal: true

# Asks two tasks about one mail in one request, then a choice with probabilities. Run `assay serve` first, and set
# ASSAY_API_KEY to the key that it prints.
require 'assay'

MAIL = 'Order A-1042 from Lumen Ltd arrived on 3 March with a broken lamp. I have asked twice for my 49.90 euro back. ' \
       'Please refund me today!'

assay = Assay::Client.new
response = Assay.ensure_complete(
  assay.run_tasks(
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

question = Assay::ChoiceQuestion.new(
  instructions: 'Which team should answer?',
  choices: [
    Assay::DecisionChoice.new(value: 'billing', description: 'Payments and refunds'),
    Assay::DecisionChoice.new(value: 'shipping')
  ]
)
team = assay.decisions(model: 'assay/starter', input: MAIL, questions: [question]).answers.first
puts "team: #{team.probabilities.to_h { |one| [one.value, one.probability] }}"
