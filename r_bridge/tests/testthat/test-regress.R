test_that("formulas are sums of names, odd ones in backticks", {
  named <- formula_names(Kcal ~ Grain + (Sugar + `a*b`) + `y ~ x`, character())
  expect_equal(named, list(response = "Kcal", terms = c("Grain", "Sugar", "a*b", "y ~ x")))
  expect_equal(formula_names(`Kcal vs Fat` ~ ., c("a", "Kcal vs Fat", "b"))$terms, c("a", "b"))
  expect_error(formula_names(Kcal ~ Grain:Sugar, character()), "only sums")
  expect_error(formula_names(Kcal ~ log(Grain), character()), "only sums")
  expect_error(formula_names(log(Kcal) ~ Grain, character()), "one variable on the left")
  expect_error(formula_names(~Grain, character()), "must be like")
})

test_that("coefficients are those of every draw", {
  needs_python()
  set.seed(1)
  posterior <- dp_erl(complete_table(), engine = "native", draws = 300, seed = 1)
  fit <- dp_regress(posterior, Kcal ~ Grain + Sugar)
  R <- dp_draws(posterior)[2, 7, , ]
  row <- posterior$draws + 7
  expect_equal(unname(fit$coefficients[row, ]), as.vector(solve(R[2:3, 2:3], R[2:3, 1])))
  expect_equal(fit$r_squared[row], drop(R[1, 2:3] %*% solve(R[2:3, 2:3], R[2:3, 1])))
  table <- summary(fit)
  expect_equal(unname(coef(fit)), table$mean[table$quantity == "coefficient"])
  expect_equal(unname(confint(fit)[, 2]), table$upper[table$quantity == "coefficient"])
  expect_equal(rownames(confint(fit, "Sugar")), "Sugar")
  expect_output(print(fit), "NOT PRIVATE")
  expect_identical(as.data.frame(fit), table)
  expect_error(dp_regress(posterior, Kcal ~ Grani), "Grani")
})
