# A worker in Ruby: one JSON line per message in, one per answer out. Standard
# output belongs to the answers; warn writes to standard error.
require "json"

$stdout.sync = true

def handle(request)
  order = JSON.parse(request["body"])
  return { outcome: "drop", reason: "the order has no sku" } if order["sku"].to_s.empty?
  if order["sku"] == "SOON" && request["attempt"] < 2
    return { outcome: "retry_after", delay: "1s", reason: "back in stock soon" }
  end

  { outcome: "ack" }
end

$stdin.each_line do |line|
  request = JSON.parse(line)
  answer = begin
    handle(request)
  rescue StandardError => e
    { outcome: "retry", reason: e.message }
  end
  puts JSON.generate({ id: request["id"] }.merge(answer))
end
