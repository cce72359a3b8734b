%% A stand-in for the delayed-message plugin, for tests. It keeps the contract
%% that a client sees: the exchange type x-delayed-message, its argument
%% x-delayed-type, the header x-delay in milliseconds (out of 1..2^32-1:
%% delivered at once; negated on the delivered message), and a held message that
%% counts as unroutable, so that mandatory returns it.
%%
%% Held messages live in memory and are gone when the node stops.
%%
%% Compiled with SERIES_3 for RabbitMQ 3.x, where a message is a record and route
%% has two arguments; from 4.0 on it is a container and route has three.
-module(rsctl_delayed_message).
-behaviour(rabbit_exchange_type).

-include_lib("rabbit_common/include/rabbit.hrl").

-export([description/0, serialise_events/0, info/1, info/2]).
-export([validate/1, validate_binding/2, assert_args_equivalence/2]).
-export([create/2, recover/2, policy_changed/2, add_binding/3, remove_bindings/3]).
-ifdef(SERIES_3).
-export([route/2, delete/3]).
-else.
-export([route/3, delete/2]).
-endif.

-rabbit_boot_step({?MODULE,
    [{description, "exchange type x-delayed-message (stand-in)"},
     {mfa, {rabbit_registry, register, [exchange, <<"x-delayed-message">>, ?MODULE]}},
     {requires, rabbit_registry},
     {enables, kernel_ready}]}).

-define(MAX_DELAY, 16#ffffffff).

description() -> [{description, <<"holds messages for x-delay milliseconds">>}].
serialise_events() -> false.
info(_) -> [].
info(_, _) -> [].

validate(#exchange{arguments = Args}) ->
    case inner_module(Args) of
        {ok, ?MODULE} -> refuse("x-delayed-type cannot be x-delayed-message itself", []);
        {ok, _} -> ok;
        error -> refuse("x-delayed-type must name an exchange type", [])
    end.

validate_binding(X, B) -> (inner(X)):validate_binding(X, B).
assert_args_equivalence(X, Args) -> rabbit_exchange:assert_args_equivalence(X, Args).
create(Tx, X) -> (inner(X)):create(Tx, X).
recover(_, _) -> ok.
policy_changed(X1, X2) -> (inner(X1)):policy_changed(X1, X2).
add_binding(Tx, X, B) -> (inner(X)):add_binding(Tx, X, B).
remove_bindings(Tx, X, Bs) -> (inner(X)):remove_bindings(Tx, X, Bs).

refuse(Format, Args) ->
    rabbit_misc:protocol_error(precondition_failed, Format, Args).

%% The module of the exchange type that routes once the delay has passed.
inner(#exchange{arguments = Args}) ->
    {ok, Module} = inner_module(Args),
    Module.

inner_module(Args) ->
    case rabbit_misc:table_lookup(Args, <<"x-delayed-type">>) of
        {longstr, Type} ->
            case rabbit_registry:binary_to_type(Type) of
                {error, not_found} -> error;
                T ->
                    case rabbit_registry:lookup_module(exchange, T) of
                        {ok, Module} -> {ok, Module};
                        _ -> error
                    end
            end;
        _ -> error
    end.

holds(Delay) -> is_integer(Delay) andalso Delay > 0 andalso Delay =< ?MAX_DELAY.

%% Publishes to the exchange again after Delay ms; the exchange may be gone then.
later(#exchange{name = Name}, Delay, Publish) ->
    spawn(fun() ->
        timer:sleep(Delay),
        case rabbit_exchange:lookup(Name) of
            {ok, X} -> Publish(X);
            {error, not_found} -> ok
        end
    end).

-ifdef(SERIES_3).

delete(Tx, X, Bs) -> (inner(X)):delete(Tx, X, Bs).

route(X, #delivery{message = Msg} = D) ->
    Delay = delay(Msg),
    case holds(Delay) of
        false -> (inner(X)):route(X, D);
        true ->
            Held = negate(Msg, Delay),
            later(X, Delay, fun(_) ->
                rabbit_basic:publish(rabbit_basic:delivery(false, false, Held, undefined))
            end),
            []
    end.

delay(#basic_message{content = Content}) ->
    case rabbit_basic:extract_headers(Content) of
        undefined -> undefined;
        Headers ->
            case rabbit_misc:table_lookup(Headers, <<"x-delay">>) of
                {_, Delay} -> Delay;
                undefined -> undefined
            end
    end.

negate(#basic_message{content = Content} = Msg, Delay) ->
    Swap = fun(Headers) ->
        rabbit_misc:set_table_value(Headers, <<"x-delay">>, long, -Delay)
    end,
    Msg#basic_message{content = rabbit_basic:map_headers(Swap, Content)}.

-else.

delete(Tx, X) -> (inner(X)):delete(Tx, X).

route(X, Msg, Opts) ->
    Delay = delay(Msg),
    case holds(Delay) of
        false -> (inner(X)):route(X, Msg, Opts);
        true ->
            Held = mc:set_annotation(<<"x-delay">>, -Delay, Msg),
            later(X, Delay, fun(Now) -> rabbit_queue_type:publish_at_most_once(Now, Held) end),
            []
    end.

delay(Msg) ->
    case mc:x_header(<<"x-delay">>, Msg) of
        {_, Delay} -> Delay;
        _ -> undefined
    end.

-endif.
