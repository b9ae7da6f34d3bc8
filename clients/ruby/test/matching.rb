# frozen_string_literal: true

# Compares values with the expectations in cases.json.
def matches(value, expected)
  case expected
  when Hash then matches_members(value, expected)
  when Array then value.is_a?(Array) && value.size == expected.size && value.zip(expected).all? { |one| matches(*one) }
  else value == expected
  end
end

def matches_members(value, expected)
  return expected['$oneOf'].include?(value) if expected.key?('$oneOf')
  return value.is_a?({ 'string' => String, 'number' => Numeric }.fetch(expected['$type'])) if expected.key?('$type')
  return false unless value.is_a?(Hash)
  return value.keys.sort == expected['$keys'].sort if expected.key?('$keys')

  expected.all? { |key, one| value.key?(key) && matches(value[key], one) }
end
