<?php
// A worker in PHP: one JSON line per message in, one per answer out. Standard
// output belongs to the answers; error_log writes to standard error.
ini_set('display_errors', 'stderr');

function handle(array $request): array
{
    $order = json_decode($request['body'], true, flags: JSON_THROW_ON_ERROR);
    if (empty($order['sku'])) {
        return ['outcome' => 'drop', 'reason' => 'the order has no sku'];
    }
    if ($order['sku'] === 'SOON' && $request['attempt'] < 2) {
        return ['outcome' => 'retry_after', 'delay' => '1s', 'reason' => 'back in stock soon'];
    }
    return ['outcome' => 'ack'];
}

while (($line = fgets(STDIN)) !== false) {
    $request = json_decode($line, true);
    try {
        $answer = handle($request);
    } catch (Throwable $error) {
        $answer = ['outcome' => 'retry', 'reason' => $error->getMessage()];
    }
    fwrite(STDOUT, json_encode(['id' => $request['id']] + $answer) . "\n");
}
